//! What a run needs of the place where it runs: one machine (`lab`) or, later, a cluster.
//!
//! For each trial: [`Environment::prepare`] → [`Arrangement::url`] → [`Arrangement::start_generator`] →
//! [`Arrangement::window_opened`], [`Arrangement::window_closed`] → [`Arrangement::finish`]. Dropping an arrangement
//! tears it down, whatever happened before.

mod clock;
pub mod deploy;
mod error;
pub mod in_memory;
mod progress;
mod snapshot;
pub(crate) mod spec;

pub use crate::settings::proxy::{AccessLog, MutualTls, ProxySettings};
pub use crate::settings::service::{ServerSettings, TCP_REQUEST_BYTES};
pub use clock::Clock;
pub use error::{EnvironmentError, ErrorContext, LastLines, in_one_line};
pub use progress::ProgressSink;
pub use snapshot::{
    ComponentMemory, ComponentSnapshot, CpuTimes, KERNEL, MachineSnapshot, OtherProcess, ProcessId,
    ProcessSnapshot, Snapshot, WindowUsage,
};
pub use spec::DeploymentSpec;

use crate::mode::{MeshKind, Mode};
use crate::schema::component::ComponentUsage;
use crate::schema::configuration::ConfigurationPush;
use crate::schema::host::Host;
use crate::schema::machine::MachineUsage;
use crate::schema::path::PathProof;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ChildStderr;
use std::time::Duration;

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
