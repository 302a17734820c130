//! What a run needs of the place where it runs: one machine (`lab`) or, later, a cluster.
//!
//! For each trial: [`Environment::prepare`] → [`Arrangement::url`] → [`Arrangement::start_generator`] →
//! [`Arrangement::window_opened`], [`Arrangement::window_closed`] → [`Arrangement::finish`]. Dropping an arrangement
//! tears it down, whatever happened before.

pub mod deploy;
mod snapshot;

pub use snapshot::{ComponentSnapshot, Snapshot, WindowUsage};

use crate::schema::{ComponentUsage, ConfigurationPush, Host, MachineUsage, PathProof};
use crate::topology::{Topology, pair};
use crate::{MeshKind, MeshSettings, Mode, Protocol};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::ChildStderr;
use std::sync::Arc;
use std::time::Duration;

/// The pods, proxies and service that one trial needs.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentSpec {
    /// Who configures the proxies.
    pub mesh: MeshKind,
    /// Where they stand.
    pub mode: Mode,
    /// Workloads, calls and drivers.
    pub topology: Arc<Topology>,
    /// What every hop of the path carries.
    pub protocol: Protocol,
    /// How the proxies are set.
    pub proxy: ProxySettings,
    /// What is asked of the control plane.
    pub istio: Arc<MeshSettings>,
    /// The synthetic service.
    pub server: ServerSettings,
    /// CPU limit of the generator, cores; absent: none.
    pub client_cpu_limit_cores: Option<f64>,
}

impl DeploymentSpec {
    /// An arrangement with every default.
    #[must_use]
    pub fn new(mesh: MeshKind, mode: Mode) -> Self {
        Self {
            mesh,
            mode,
            topology: Arc::new(pair(1, 1, &ServerSettings::default(), mode.is_egress(), None)),
            protocol: Protocol::default(),
            proxy: ProxySettings::default(),
            istio: Arc::default(),
            server: ServerSettings::default(),
            client_cpu_limit_cores: None,
        }
    }
}

/// Switches of the proxies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxySettings {
    /// Worker threads of each proxy.
    pub workers: usize,
    /// Mutual TLS between proxies. A single gateway has no peer proxy and is not affected.
    pub mtls: MutualTls,
    /// Access log.
    pub access_log: AccessLog,
    /// CPU limit of each proxy, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self { workers: 2, mtls: MutualTls::Strict, access_log: AccessLog::Off, cpu_limit_cores: None }
    }
}

/// Mutual TLS between proxies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MutualTls {
    /// Proxies speak it, and take nothing else.
    #[default]
    Strict,
    /// Proxies speak it with each other, and take plain text too.
    Permissive,
    /// Plain text alone.
    Off,
}

impl MutualTls {
    /// Whether the proxies of a path speak it with each other.
    #[must_use]
    pub fn is_spoken(self) -> bool {
        self != Self::Off
    }

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Permissive => "permissive",
            Self::Off => "off",
        }
    }
}

/// What a proxy writes of each request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessLog {
    /// Nothing.
    #[default]
    Off,
    /// A line of text.
    Text,
    /// A JSON object.
    Json,
}

/// Settings of the synthetic service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Size of the response body, bytes.
    pub payload_bytes: u64,
    /// Time before each answer.
    pub delay: Duration,
    /// Fraction of requests answered with status 500, 0 to 1.
    pub error_fraction: f64,
    /// CPU limit, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { payload_bytes: 1024, delay: Duration::ZERO, error_fraction: 0.0, cpu_limit_cores: None }
    }
}

/// Size of a request over raw TCP, bytes: about that of an HTTP request without a body. Generator and service must agree.
pub const TCP_REQUEST_BYTES: u64 = 100;

/// A place where trials run.
pub trait Environment {
    /// The machine and the versions of the components.
    fn host(&self) -> Host;

    /// Whether this mode can run here. The error says what is missing and how to get it: nothing stands in for a mode.
    ///
    /// # Errors
    /// Where a component or a kernel feature that the mode needs is absent.
    fn can_run(&self, mesh: MeshKind, mode: Mode) -> Result<(), EnvironmentError>;

    /// Starts everything that the trial needs, and waits until it is ready to serve. Logs go to files in `log_dir`.
    ///
    /// # Errors
    /// Where a component does not come up; what had been started is taken down again.
    fn prepare(
        &mut self,
        spec: &DeploymentSpec,
        log_dir: &Path,
    ) -> Result<Box<dyn Arrangement + '_>, EnvironmentError>;
}

/// Running pods, proxies and service of one trial.
pub trait Arrangement {
    /// What the generator is to request, as a client in its pod would write it.
    fn url(&self) -> String;

    /// What the generator needs besides its load, as arguments of `meshmeter load`: where to connect instead of to the
    /// URL's host, certificates to trust and to show, headers to send.
    fn client_arguments(&self) -> Vec<String>;

    /// Reads the proxies' counters, then starts `meshmeter` with these arguments in the client's pod and returns its
    /// standard error, on which it reports events. Its standard output goes to a log file.
    ///
    /// # Errors
    /// Where it cannot be started, or a proxy does not answer.
    fn start_generator(&mut self, arguments: &[String]) -> Result<ChildStderr, EnvironmentError>;

    /// Asks the generator to end early and keep what it has (SIGINT). One that stands still is ended.
    fn interrupt_generator(&mut self);

    /// The generator's measured window opens now: reads every component's counters.
    ///
    /// # Errors
    /// Where a component is gone.
    fn window_opened(&mut self) -> Result<(), EnvironmentError>;

    /// The window closes now: reads every component's counters again.
    ///
    /// # Errors
    /// Where a component is gone.
    fn window_closed(&mut self) -> Result<(), EnvironmentError>;

    /// The first component that has died or stands still, and in what way, as words that go on after its name. The
    /// generator may end, but not stand still. To be asked about once a second.
    fn failed_component(&mut self) -> Option<(String, String)>;

    /// The same after every component was asked for a sign of life: one that runs and does not answer counts as failed
    /// too. Takes seconds where one is silent, and disturbs the others: for when nothing is being measured.
    fn failed_or_silent_component(&mut self) -> Option<(String, String)>;

    /// Waits for the generator's end, at most this long (then ends it), and gives its exit code; absent where it was
    /// ended by a signal.
    ///
    /// # Errors
    /// Where it had to be ended.
    fn wait_generator(&mut self, at_most: Duration) -> Result<Option<i32>, EnvironmentError>;

    /// Reads the proxies' counters again, takes everything down and says what was seen.
    fn finish(self: Box<Self>, sent: &SentLoad) -> Observation;
}

/// What the generator says that it sent over a whole trial, warm-up included: what the proxies' counters are held against.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SentLoad {
    /// Requests.
    pub requests: u64,
    /// Bytes of a request, on average; absent where none was sent in the window.
    pub request_bytes: Option<f64>,
}

/// What an environment saw of one trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Every component, the generator, the kernel and the observer included.
    pub components: Vec<ComponentUsage>,
    /// Proof of the path.
    pub path: PathProof,
    /// The machine as a whole; absent where the window was never opened and closed.
    pub machine: Option<MachineUsage>,
    /// Last log lines of components that failed.
    pub log_tails: BTreeMap<String, Vec<String>>,
    /// What to do about them.
    pub hints: Vec<String>,
    /// How long the configuration took to be in force; absent without a control plane.
    pub push: Option<ConfigurationPush>,
}

/// Something of the environment is not as it must be.
#[derive(Debug)]
pub struct EnvironmentError {
    /// The operation and its subject, such as `start client-proxy`.
    pub operation: String,
    /// What was wrong.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The component that it is about; absent where it is about none.
    pub component: Option<Box<LastLines>>,
}

/// A component, with the last lines of its log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastLines {
    /// Its name.
    pub component: String,
    /// The lines.
    pub lines: Vec<String>,
}

impl EnvironmentError {
    /// An error with a cause.
    pub fn new(
        operation: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { operation: operation.into(), source: Some(source.into()), hint: None, component: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says which component it is about, with the last lines of its log.
    #[must_use]
    pub fn about_component(mut self, component: impl Into<String>, lines: Vec<String>) -> Self {
        self.component = Some(Box::new(LastLines { component: component.into(), lines }));
        self
    }

    /// What to do about it: its own hint, or that of the nearest cause that has one.
    #[must_use]
    pub fn nearest_hint(&self) -> Option<&str> {
        self.with_causes().find_map(|error| error.hint.as_deref())
    }

    /// The component that it or its nearest cause is about.
    #[must_use]
    pub fn nearest_component(&self) -> Option<&LastLines> {
        self.with_causes().find_map(|error| error.component.as_deref())
    }

    /// It and all its causes of its own kind.
    fn with_causes(&self) -> impl Iterator<Item = &Self> {
        let first: &(dyn std::error::Error + 'static) = self;
        std::iter::successors(Some(first), |error| error.source()).filter_map(|error| error.downcast_ref())
    }
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operation)
    }
}

impl std::error::Error for EnvironmentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// An error and its causes on one line, as `operation: cause: cause of the cause`.
#[must_use]
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
