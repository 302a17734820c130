//! Definition of an experiment: everything in an experiment file, with every default filled in.
//!
//! [`crate::file`] reads and writes these values as YAML. Only its reader validates them.

use crate::keys::Kind;
pub use crate::keys::MAX_RUN_DURATION;
use crate::keys::settings::keys;
use crate::keys::words::words;
use crate::mesh_kind::MeshKind;
use crate::objective::Objective;
use crate::protocol::Protocol;
use crate::published::PublishedSource;
use crate::settings::components::ComponentsSettings;
use crate::settings::fleet::FleetSettings;
use crate::settings::ingress::{Estate, GatewaySettings};
use crate::settings::istio::MeshSettings;
use crate::settings::proxy::ProxySettings;
use crate::settings::service::ServerSettings;
use crate::settings::stream::StreamSettings;
use crate::topology::settings::TopologySettings;
use results::{ExpectedStatuses, FactorValue, Factors, Mode, Pacing, UnavailableMode};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Question and the settings used to measure it.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Name of the run directory: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Question in the user's words; may be empty.
    pub question: String,
    /// Figure that the headline states; absent: that of the kind of run.
    pub headline: Option<HeadlineFigure>,
    /// Shape and size of the topology.
    pub topology: TopologySettings,
    /// Mesh type: what configures the proxies.
    pub mesh: MeshKind,
    /// The modes to compare, in the order of the file, each once.
    pub modes: Vec<Mode>,
    /// Load of the generator; for a fleet, [`LoadSettings::of_fleet`].
    pub load: LoadSettings,
    /// Simulated proxies, instead of a load.
    pub fleet: Option<Arc<FleetSettings>>,
    /// Trials per cell.
    pub repeats: usize,
    /// Maximum number of reruns of each trial that the machine disturbed.
    pub retakes: usize,
    /// Seed for the order of the trials; absent: each run draws one.
    pub seed: Option<u64>,
    /// Bounds that the figures must meet.
    pub objective: Objective,
    /// Smallest differences between modes that the run should resolve.
    pub resolve: Resolve,
    /// Published figures for the same question.
    pub published: Vec<PublishedSource>,
    /// Settings of the proxies.
    pub proxy: ProxySettings,
    /// Versions and programs of the components.
    pub components: ComponentsSettings,
    /// Settings of Istio; all off without a control plane.
    pub istio: Arc<MeshSettings>,
    /// Domains behind the ingress gateway, or behind the static gateway.
    pub ingress: Arc<Estate>,
    /// Resources of that gateway.
    pub gateway: GatewaySettings,
    /// Synthetic service, payload included.
    pub server: ServerSettings,
    /// CPU limit of the generator, cores; absent: none.
    pub client_cpu_limit_cores: Option<f64>,
    /// Lifetime of a deployment; absent: [`Fresh::default_for`].
    pub fresh: Option<Fresh>,
    /// Keys that hold a list, the most expensive to change first. The other fields hold the first value of
    /// each.
    pub factors: Vec<Factor>,
    /// Every combination of factor values, the last factor varying fastest; empty without factors.
    pub combinations: Vec<Combination>,
    /// Cells that cannot run in this environment; not part of the file.
    pub left_out: Vec<LeftOut>,
}

/// Cells that cannot run: a mode with some factor values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeftOut {
    /// Mode of the cells.
    pub mode: Mode,
    /// Values of some of the factors.
    pub factors: Factors,
}

impl Experiment {
    /// Every combination of factor values with its experiment; without factors, the experiment itself.
    pub fn each_combination(&self) -> impl Iterator<Item = (Factors, &Self)> {
        let own = self.combinations.is_empty().then(|| (Factors::new(), self));
        own.into_iter().chain(self.combinations.iter().map(|one| (one.factors.clone(), &one.experiment)))
    }

    /// Experiment of the first combination with these values, which may be those of some factors only.
    #[must_use]
    pub fn combination_of(&self, values: &Factors) -> Option<&Self> {
        let has_all = |all: &Factors| values.iter().all(|(key, value)| all.get(key) == Some(value));
        self.each_combination().find(|(all, _)| has_all(all)).map(|(_, experiment)| experiment)
    }

    /// Leaves out cells that cannot run in this environment.
    pub fn leave_out(&mut self, unavailable: &[UnavailableMode]) {
        let (modes, cells): (Vec<&UnavailableMode>, Vec<_>) =
            unavailable.iter().partition(|unavailable| unavailable.factors.is_empty());
        let is_left = |mode: &Mode| modes.iter().all(|unavailable| unavailable.mode != *mode);
        self.modes.retain(is_left);
        self.combinations.iter_mut().for_each(|one| one.experiment.modes.retain(is_left));
        self.left_out
            .extend(cells.into_iter().map(|cell| LeftOut { mode: cell.mode, factors: cell.factors.clone() }));
    }

    /// True if the cells of a mode with these factor values can run.
    #[must_use]
    pub fn has_cell(&self, mode: Mode, factors: &Factors) -> bool {
        let is_among = |left_out: &LeftOut| {
            left_out.mode == mode
                && left_out.factors.iter().all(|(key, value)| factors.get(key) == Some(value))
        };
        !self.left_out.iter().any(is_among)
    }

    /// Factor with this key, if any.
    #[must_use]
    pub fn factor(&self, key: &str) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.key == key)
    }
}

/// Figure that a headline states.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeadlineFigure {
    /// Median response time.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// Responses per second of a closed loop.
    Throughput,
    /// CPU of all proxies.
    Cpu,
}

words!(HeadlineFigure { P50 = "p50", P90 = "p90", P99 = "p99", Throughput = "throughput", Cpu = "cpu" });

/// Lifetime of a deployment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fresh {
    /// One trial per deployment.
    Trial,
    /// All loads of a mode within a repeat share one deployment.
    Mode,
}

words!(Fresh { Trial = "trial", Mode = "mode" });

/// Key that holds a list: each value has its own cells.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Factor {
    /// Dotted key, such as `proxy.workers`.
    pub key: String,
    /// Two or more distinct values, in the order of the file.
    pub values: Vec<FactorValue>,
}

/// One value per factor, and the resulting experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// Value of each factor.
    pub factors: Factors,
    /// Experiment with these values and without factors.
    pub experiment: Experiment,
}

/// Load of the generator. The payload is a setting of the service, which sends it in its responses.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSettings {
    /// Protocol of the requests.
    pub protocol: Protocol,
    /// Connections kept open. Absent in closed loop: one per client.
    pub connections: Option<usize>,
    /// Requests after which the generator replaces a connection. Absent: connections stay open.
    pub requests_per_connection: Option<usize>,
    /// Responses that are streams of tokens.
    pub stream: StreamSettings,
    /// Load levels to measure. Each is one cell per mode.
    pub levels: LoadLevels,
    /// Time before the measured window, under the same load.
    pub warmup: Duration,
    /// The measured window.
    pub duration: Duration,
    /// Requests without a response after this time count as failed.
    pub timeout: Duration,
    /// Statuses that responses must have not to count as errors; absent: those below 400.
    pub expected_status: Option<ExpectedStatuses>,
    /// Worker threads of each generator.
    pub threads: usize,
    /// Generators that share the load of each driver, each in its own pod.
    pub generators: usize,
    /// Pacing of the generators in every trial; absent: chosen once per run, for the machine.
    pub pacing: Option<Pacing>,
}

/// Defaults of a file, which has no rates by default.
impl Default for LoadSettings {
    fn default() -> Self {
        Self {
            protocol: Protocol::default(),
            connections: None,
            requests_per_connection: None,
            stream: StreamSettings::default(),
            levels: LoadLevels::Open { rates: Vec::new(), arrival: Arrival::default() },
            warmup: Duration::from_secs(1),
            duration: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            expected_status: None,
            threads: 1,
            generators: 1,
            pacing: None,
        }
    }
}

impl LoadSettings {
    /// Settings without requests: the measured window is that of the fleet.
    #[must_use]
    pub fn of_fleet(fleet: &FleetSettings) -> Self {
        Self {
            levels: LoadLevels::Fleet,
            warmup: Duration::ZERO,
            duration: fleet.window(),
            timeout: Duration::ZERO,
            ..Self::default()
        }
    }
}

/// Smallest differences between modes that a run should resolve. Absent: no target.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Resolve {
    /// Difference in the median response time.
    pub p50: Option<Duration>,
    /// Difference in the 99th percentile of the response time.
    pub p99: Option<Duration>,
}

keys!(Resolve {
    key p50: "p50", Kind::PositiveDuration, "smallest difference of the median that the run should show";
    key p99: "p99", Kind::PositiveDuration,
        "smallest difference of the 99th percentile that the run should show";
});

/// Load levels of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadLevels {
    /// Open loop: requests are scheduled at these rates, independent of responses.
    Open {
        /// Distinct rates, requests/s.
        rates: Vec<f64>,
        /// Arrival process.
        arrival: Arrival,
    },
    /// Closed loop: each client sends the next request after its response.
    Closed {
        /// Distinct numbers of clients.
        clients: Vec<usize>,
    },
    /// A fleet of simulated proxies: no requests.
    Fleet,
}

impl LoadLevels {
    /// Number of levels.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Open { rates, .. } => rates.len(),
            Self::Closed { clients } => clients.len(),
            Self::Fleet => 1,
        }
    }
}

/// Arrival process of open-loop requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Arrival {
    /// Evenly spaced.
    #[default]
    Uniform,
    /// Poisson process: exponential gaps, as for independent users.
    Poisson,
}

words!(Arrival { Uniform = "uniform", Poisson = "poisson" });

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
