//! What an experiment is: everything that an experiment file says, with every default filled in.
//!
//! [`crate::file`] reads and writes these values as YAML. Whoever makes one by hand gets none of the checks of the
//! reader.

use crate::environment::{ProxySettings, ServerSettings};
use crate::published::PublishedSource;
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
    pub topology: Topology,
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
    /// What is asked of the control plane; all off where the mesh has none. Of several sizes of the mesh it has the largest.
    pub istio: Arc<MeshSettings>,
    /// Other services around the pair: each number once, in the order of the file, each a size of the mesh to compare. One
    /// alone, mostly none, unless the file lists several.
    pub mesh_sizes: Vec<usize>,
    /// The synthetic service, the payload included.
    pub server: ServerSettings,
    /// CPU limit of the generator, cores; absent: none.
    pub client_cpu_limit_cores: Option<f64>,
    /// How long a deployment lives; absent: decided by what bringing it up costs.
    pub fresh: Option<Fresh>,
}

/// Which services call which.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Topology {
    /// One client and one server.
    #[default]
    Pair,
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pair => f.pad("pair"),
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
