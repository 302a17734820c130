//! What an experiment is: everything that an experiment file says, with every default filled in.
//!
//! [`crate::file`] reads and writes these values as YAML. Whoever makes one by hand gets none of the checks of the
//! reader.

use crate::environment::{ProxySettings, ServerSettings};
use crate::published::PublishedSource;
use crate::schema::{FactorValue, Factors};
use crate::topology::{Topology, pair};
use crate::{MeshKind, MeshSettings, Mode, Objective};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A question, and how it is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Names the run's folder: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What is asked; may be empty.
    pub question: String,
    /// Which services call which.
    pub topology: TopologySettings,
    /// Who configures the proxies.
    pub mesh: MeshKind,
    /// The arrangements to compare, in the order of the file, each once.
    pub modes: Vec<Mode>,
    /// What the generator offers.
    pub load: LoadSettings,
    /// How often each mode is measured under each load.
    pub repeats: usize,
    /// How often each trial that the machine disturbed is taken again, at most.
    pub retakes: usize,
    /// Orders the trials; drawn anew for each run where absent.
    pub seed: Option<u64>,
    /// What must hold for the run to be good.
    pub objective: Objective,
    /// What others published for the same question.
    pub published: Vec<PublishedSource>,
    /// How the proxies are set.
    pub proxy: ProxySettings,
    /// What is asked of the control plane; all off where the mesh has none.
    pub istio: Arc<MeshSettings>,
    /// The synthetic service, the payload included.
    pub server: ServerSettings,
    /// CPU limit of the generator, cores; absent: none.
    pub client_cpu_limit_cores: Option<f64>,
    /// How long a deployment lives; absent: decided by what bringing it up costs.
    pub fresh: Option<Fresh>,
    /// Keys that hold a list, the most expensive to change first. The other fields have the first value of each.
    pub factors: Vec<Factor>,
    /// Every combination of the factors' values, the last factor varying fastest; empty without factors.
    pub combinations: Vec<Combination>,
}

impl Experiment {
    /// Every combination of the factors' values with its experiment; without factors the experiment itself.
    pub fn each_combination(&self) -> impl Iterator<Item = (Factors, &Self)> {
        let own = self.combinations.is_empty().then(|| (Factors::new(), self));
        own.into_iter().chain(self.combinations.iter().map(|one| (one.factors.clone(), &one.experiment)))
    }

    /// The factor of this key.
    #[must_use]
    pub fn factor(&self, key: &str) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.key == key)
    }
}

/// Which services call which: a built-in shape and its size.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TopologySettings {
    /// The shape.
    pub shape: TopologyShape,
    /// Copies of the shape, each in a namespace of its own.
    pub namespaces: usize,
    /// Pods of each service.
    pub replicas: usize,
}

impl Default for TopologySettings {
    fn default() -> Self {
        Self { shape: TopologyShape::default(), namespaces: 1, replicas: 1 }
    }
}

impl TopologySettings {
    /// The topology of a mode. The servers of an egress mode stand outside the mesh.
    #[must_use]
    pub fn topology(
        &self,
        mode: Mode,
        server: &ServerSettings,
        client_cpu_limit_cores: Option<f64>,
    ) -> Topology {
        match self.shape {
            TopologyShape::Pair => {
                pair(self.namespaces, self.replicas, server, mode.is_egress(), client_cpu_limit_cores)
            }
        }
    }
}

/// Built-in topologies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TopologyShape {
    /// One client and one server.
    #[default]
    Pair,
}

impl TopologyShape {
    /// Every shape with the name that users type.
    pub const NAMES: [(&'static str, Self); 1] = [("pair", Self::Pair)];

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
        }
    }
}

/// How long a deployment lives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fresh {
    /// Each trial has one of its own.
    Trial,
    /// All loads of a mode within a repeat share one.
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
    /// The values.
    pub factors: Factors,
    /// The experiment with these values, without factors of its own.
    pub experiment: Experiment,
}

/// What the generator offers, but for the payload, which the service answers with.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSettings {
    /// What is spoken.
    pub protocol: Protocol,
    /// Connections kept open. Absent in closed loop: one for each client.
    pub connections: Option<usize>,
    /// The levels of load to measure, each a cell of the experiment for each mode.
    pub levels: LoadLevels,
    /// Time before the measured window, under the same load.
    pub warmup: Duration,
    /// The measured window.
    pub duration: Duration,
    /// After this a request counts as failed.
    pub timeout: Duration,
    /// The generator's worker threads.
    pub threads: usize,
}

/// What the generator speaks, and every hop of the path carries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Protocol {
    /// HTTP/1.1, connections kept alive.
    #[default]
    Http1,
    /// HTTP/2; in clear text by prior knowledge.
    Http2,
    /// Unary calls of gRPC.
    Grpc,
    /// Messages over TCP that no proxy understands.
    Tcp,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: [Self; 4] = [Self::Http1, Self::Http2, Self::Grpc, Self::Tcp];

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "http/2",
            Self::Grpc => "grpc",
            Self::Tcp => "tcp",
        }
    }

    /// The scheme of its URLs, as `meshmeter load` takes them.
    #[must_use]
    pub fn scheme(self, over_tls: bool) -> &'static str {
        match (self, over_tls) {
            (Self::Http1 | Self::Http2, false) => "http",
            (Self::Http1 | Self::Http2, true) => "https",
            (Self::Grpc, false) => "grpc",
            (Self::Grpc, true) => "grpcs",
            (Self::Tcp, false) => "tcp",
            (Self::Tcp, true) => "tls",
        }
    }

    /// The path of every request to the synthetic service: of gRPC its method.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Http1 | Self::Http2 => "/",
            Self::Grpc => "/meshmeter.v1.Echo/Unary",
            Self::Tcp => "",
        }
    }

    /// Whether it consists of HTTP requests, which a proxy can read.
    #[must_use]
    pub fn is_http(self) -> bool {
        self != Self::Tcp
    }

    /// Whether a connection carries several requests at once.
    #[must_use]
    pub fn multiplexes(self) -> bool {
        matches!(self, Self::Http2 | Self::Grpc)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The levels of load of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadLevels {
    /// Open loop: requests are due at these rates whatever the answers do.
    Open {
        /// Requests a second, each level once.
        rates: Vec<f64>,
        /// How the requests are spread.
        arrival: Arrival,
    },
    /// Closed loop: each client sends again when it was answered.
    Closed {
        /// Clients, each level once.
        clients: Vec<usize>,
    },
}

impl LoadLevels {
    /// Number of levels.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Open { rates, .. } => rates.len(),
            Self::Closed { clients } => clients.len(),
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
