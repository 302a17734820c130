//! What an experiment is: everything that an experiment file says, with every default filled in.
//!
//! [`crate::file`] reads and writes these values as YAML; only its reader checks them.

use crate::mode::{MeshKind, Mode};
use crate::objective::Objective;
use crate::protocol::Protocol;
use crate::published::PublishedSource;
use crate::schema::Pacing;
use crate::schema::UnavailableMode;
use crate::schema::factor::{FactorValue, Factors};
use crate::settings::components::ComponentsSettings;
use crate::settings::fleet::FleetSettings;
use crate::settings::ingress::{Estate, GatewaySettings};
use crate::settings::istio::MeshSettings;
use crate::settings::proxy::ProxySettings;
use crate::settings::service::ServerSettings;
use crate::topology::settings::TopologySettings;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A question, and how it is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Names the run directory: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// May be empty.
    pub question: String,
    /// Shape and size of the topology.
    pub topology: TopologySettings,
    /// Who configures the proxies.
    pub mesh: MeshKind,
    /// The modes to compare, in the order of the file, each once.
    pub modes: Vec<Mode>,
    /// Load of the generator; of a fleet [`LoadSettings::of_fleet`].
    pub load: LoadSettings,
    /// Simulated proxies, in place of a load.
    pub fleet: Option<Arc<FleetSettings>>,
    /// Trials per cell.
    pub repeats: usize,
    /// Maximum number of reruns of each trial that the machine disturbed.
    pub retakes: usize,
    /// Orders the trials; absent: each run draws one.
    pub seed: Option<u64>,
    /// Bounds that a good run keeps.
    pub objective: Objective,
    /// The smallest differences between modes that the run is to show.
    pub resolve: Resolve,
    /// Figures that others published for the same question.
    pub published: Vec<PublishedSource>,
    /// Switches of the proxies.
    pub proxy: ProxySettings,
    /// Versions and programs of the components.
    pub components: ComponentsSettings,
    /// Switches of Istio; all off without a control plane.
    pub istio: Arc<MeshSettings>,
    /// Domains behind the ingress gateway, or behind the gateway with static files.
    pub ingress: Arc<Estate>,
    /// Resources of that gateway.
    pub gateway: GatewaySettings,
    /// The synthetic service, the payload included.
    pub server: ServerSettings,
    /// CPU limit of the generator, cores; absent: none.
    pub client_cpu_limit_cores: Option<f64>,
    /// Lifetime of a deployment; absent: [`Fresh::default_for`].
    pub fresh: Option<Fresh>,
    /// Keys that hold a list, the most expensive to change first. The other fields have the first value of each.
    pub factors: Vec<Factor>,
    /// Every combination of the factors' values, the last factor varying fastest; empty without factors.
    pub combinations: Vec<Combination>,
    /// Cells that cannot run here; not part of the file.
    pub left_out: Vec<LeftOut>,
}

/// Cells that cannot run: a mode with these values of factors.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeftOut {
    /// The mode.
    pub mode: Mode,
    /// Some of the factors.
    pub factors: Factors,
}

impl Experiment {
    /// Every combination of the factors' values with its experiment; without factors the experiment itself.
    pub fn each_combination(&self) -> impl Iterator<Item = (Factors, &Self)> {
        let own = self.combinations.is_empty().then(|| (Factors::new(), self));
        own.into_iter().chain(self.combinations.iter().map(|one| (one.factors.clone(), &one.experiment)))
    }

    /// Leaves out what cannot run here.
    pub fn leave_out(&mut self, unavailable: &[UnavailableMode]) {
        let (modes, cells): (Vec<&UnavailableMode>, Vec<_>) =
            unavailable.iter().partition(|unavailable| unavailable.factors.is_empty());
        self.modes.retain(|mode| modes.iter().all(|unavailable| unavailable.mode != *mode));
        self.left_out
            .extend(cells.into_iter().map(|cell| LeftOut { mode: cell.mode, factors: cell.factors.clone() }));
    }

    /// Whether the cells of a mode with these values of the factors can run.
    #[must_use]
    pub fn has_cell(&self, mode: Mode, factors: &Factors) -> bool {
        let is_among = |left_out: &LeftOut| {
            left_out.mode == mode
                && left_out.factors.iter().all(|(key, value)| factors.get(key) == Some(value))
        };
        !self.left_out.iter().any(is_among)
    }

    /// The factor of this key.
    #[must_use]
    pub fn factor(&self, key: &str) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.key == key)
    }
}

/// Lifetime of a deployment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fresh {
    /// One trial.
    Trial,
    /// All loads of a mode within a repeat.
    Mode,
}

impl Fresh {
    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trial => "trial",
            Self::Mode => "mode",
        }
    }
}

/// A key that holds a list: each value makes cells of its own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Factor {
    /// The dotted key, such as `proxy.workers`.
    pub key: String,
    /// Two or more, in the order of the file, each once.
    pub values: Vec<FactorValue>,
}

/// One value of each factor, and the experiment that they make.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// Value of each factor.
    pub factors: Factors,
    /// The experiment with these values, without factors of its own.
    pub experiment: Experiment,
}

/// Load of the generator. Its payload is a setting of the service, which responds with it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSettings {
    /// Protocol of the requests.
    pub protocol: Protocol,
    /// Connections kept open. Absent in closed loop: one per client.
    pub connections: Option<usize>,
    /// The levels of load to measure, each a cell per mode.
    pub levels: LoadLevels,
    /// Time before the measured window, under the same load.
    pub warmup: Duration,
    /// The measured window.
    pub duration: Duration,
    /// A request counts as failed after it.
    pub timeout: Duration,
    /// Worker threads of each generator.
    pub threads: usize,
    /// Generators that share the load of each driver, each in a pod of its own.
    pub generators: usize,
    /// How they wait in every trial; absent: chosen once per run, for the machine.
    pub pacing: Option<Pacing>,
}

impl LoadSettings {
    /// No requests: the measured window is that of the fleet.
    #[must_use]
    pub fn of_fleet(fleet: &FleetSettings) -> Self {
        Self {
            protocol: Protocol::default(),
            connections: None,
            levels: LoadLevels::Fleet,
            warmup: Duration::ZERO,
            duration: fleet.window(),
            timeout: Duration::ZERO,
            threads: 1,
            generators: 1,
            pacing: None,
        }
    }
}

/// The smallest differences between modes that a run is to show. Absent: it is measured as well as it goes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Resolve {
    /// Of the median response time.
    pub p50: Option<Duration>,
    /// Of its 99th percentile.
    pub p99: Option<Duration>,
}

/// The levels of load of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadLevels {
    /// Open loop: requests are due at these rates, independent of responses.
    Open {
        /// Requests/s, each level once.
        rates: Vec<f64>,
        /// How the requests are spread.
        arrival: Arrival,
    },
    /// Closed loop: each client sends again when it has its response.
    Closed {
        /// Clients, each level once.
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

/// How open-loop requests are spread over time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Arrival {
    /// Evenly.
    #[default]
    Uniform,
    /// As independent users come: exponential gaps.
    Poisson,
}

impl Arrival {
    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Poisson => "poisson",
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
