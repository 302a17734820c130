//! Topology: workloads, the calls between them, and the drivers that offer load.
//!
//! Pure values. Built-in topologies are in [`shapes`], files in [`mod@file`], and what follows from the scripts alone in
//! [`expected`]. What a data plane attaches to a workload is in [`crate::dataplane`], what runs a topology is behind
//! [`crate::environment`].

mod arrange;
pub mod distribution;
pub mod expected;
pub mod file;
mod fleet;
pub mod needs;
pub(crate) mod pair;
pub mod script;
pub mod settings;
pub mod shapes;

pub use fleet::{FLEET, fleet};
pub use pair::{PAIR_CLIENT, PAIR_DRIVER, PAIR_SERVER, pair};

use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;
use script::{DEFAULT_ENDPOINT, ScriptedService};

/// Position of a workload in [`Topology::workloads`].
pub type WorkloadId = usize;

/// Workloads, who calls whom, and who offers load at what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The name that users type, such as `pair`.
    pub name: String,
    /// Every workload; `(namespace, name)` is unique.
    pub workloads: Vec<Workload>,
    /// Edges of the graph, those of the drivers included.
    pub calls: Vec<Call>,
    /// In the order in which results show them; names are unique.
    pub drivers: Vec<DriverPlacement>,
}

/// A set of identical pods.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name within its namespace: of its Service, its account and its pods.
    pub name: String,
    /// Namespace within the topology; empty in a topology that has a single one. An environment may prefix it.
    pub namespace: String,
    /// Number of pods.
    pub replicas: usize,
    /// Protocol of the requests to it.
    pub protocol: Protocol,
    /// Requests and limits of each pod's application container, or of each driver.
    pub resources: Resources,
    /// What each pod runs.
    pub runs: Runs,
    /// Whether it belongs to the mesh where the mode has one. Only members get a proxy.
    pub in_mesh: bool,
}

/// What a pod of a workload runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Runs {
    /// Nothing of its own: drivers are started in it.
    Drivers,
    /// The synthetic service (`meshmeter serve`).
    Service(ServerSettings),
    /// The synthetic service outside the mesh: it speaks TLS itself, and calls to it take the mode's exit.
    ExternalService(ServerSettings),
    /// A service whose endpoints have scripts (`meshmeter serve --topology`).
    Scripted(ScriptedService),
    /// A database that speaks MongoDB's protocol over TLS, outside the mesh: queries to it take the mode's exit.
    Database,
}

/// What a container reserves and may use; absent: nothing, or no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resources {
    /// CPU that it reserves, cores.
    pub cpu_request_cores: Option<f64>,
    /// CPU limit, cores.
    pub cpu_limit_cores: Option<f64>,
    /// Memory that it reserves, bytes.
    pub memory_request_bytes: Option<u64>,
    /// Memory limit, bytes.
    pub memory_limit_bytes: Option<u64>,
}

impl Resources {
    /// No more than a limit of CPU, or nothing.
    #[must_use]
    pub fn cpu_limit(cpu_limit_cores: Option<f64>) -> Self {
        Self { cpu_limit_cores, ..Self::default() }
    }
}

/// An edge: one workload sends requests to another.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Call {
    /// The caller.
    pub from: WorkloadId,
    /// The callee.
    pub to: WorkloadId,
}

/// Where a driver runs and what it offers load to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DriverPlacement {
    /// Unique among the drivers.
    pub name: String,
    /// The workload in whose pods it runs: a generator in each, which share its load.
    pub at: WorkloadId,
    /// The workload that it offers load to.
    pub target: WorkloadId,
    /// Path of the endpoint that it requests.
    pub endpoint: String,
}

/// A name, with a number from 1 where there are several.
fn numbered(name: String, count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(move |number| if count == 1 { name.clone() } else { format!("{name}-{number}") })
}

impl Workload {
    /// Name that is unique in the topology: `name`, or `namespace/name` in a topology of several namespaces.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// Names of its pods: the qualified name, with a number from 1 where there are several.
    pub fn pod_names(&self) -> impl Iterator<Item = String> + '_ {
        numbered(self.qualified_name(), self.replicas)
    }

    /// Settings of the synthetic service; absent where it runs none.
    #[must_use]
    pub fn service(&self) -> Option<&ServerSettings> {
        match &self.runs {
            Runs::Service(settings) | Runs::ExternalService(settings) => Some(settings),
            Runs::Drivers | Runs::Scripted(_) | Runs::Database => None,
        }
    }

    /// Its endpoints with their scripts; absent where it has none.
    #[must_use]
    pub fn script(&self) -> Option<&ScriptedService> {
        match &self.runs {
            Runs::Scripted(service) => Some(service),
            _ => None,
        }
    }

    /// Size of a reply over TCP, bytes, on which both ends agree.
    #[must_use]
    pub fn tcp_reply_bytes(&self) -> u64 {
        let endpoint = self.script().and_then(|script| script.endpoint(DEFAULT_ENDPOINT));
        let bytes = match (self.service(), endpoint) {
            (Some(settings), _) => settings.payload_bytes,
            (None, Some(endpoint)) => endpoint.response_bytes.mean() as u64,
            (None, None) => 0,
        };
        bytes.max(1)
    }

    /// Whether it answers requests.
    #[must_use]
    pub fn serves(&self) -> bool {
        !matches!(self.runs, Runs::Drivers)
    }

    /// Whether it stands outside the mesh by its nature.
    #[must_use]
    pub fn is_external(&self) -> bool {
        matches!(self.runs, Runs::ExternalService(_) | Runs::Database)
    }
}

impl Topology {
    /// Namespaces in the order of their first workload.
    #[must_use]
    pub fn namespaces(&self) -> Vec<&str> {
        let mut namespaces: Vec<&str> = Vec::new();
        for workload in &self.workloads {
            if !namespaces.contains(&workload.namespace.as_str()) {
                namespaces.push(&workload.namespace);
            }
        }
        namespaces
    }

    /// Number of pods.
    #[must_use]
    pub fn pods(&self) -> usize {
        self.workloads.iter().map(|workload| workload.replicas).sum()
    }

    /// Position of the workload of this qualified name.
    #[must_use]
    pub fn find(&self, qualified_name: &str) -> Option<WorkloadId> {
        self.workloads.iter().position(|workload| workload.qualified_name() == qualified_name)
    }

    /// The workload that the first driver offers load to.
    #[must_use]
    pub fn target(&self) -> Option<&Workload> {
        Some(&self.workloads[self.drivers.first()?.target])
    }

    /// Gives every driver this number of generators, each in a pod of its own.
    pub(crate) fn set_generators(&mut self, generators: usize) {
        for driver in &self.drivers {
            self.workloads[driver.at].replicas = generators;
        }
    }

    /// Names of the generators of a driver: its own, with a number from 1 where there are several.
    pub fn generator_names(&self, driver: &DriverPlacement) -> impl Iterator<Item = String> + use<> {
        numbered(driver.name.clone(), self.workloads[driver.at].replicas)
    }

    /// The driver of this name.
    #[must_use]
    pub fn driver(&self, name: &str) -> Option<&DriverPlacement> {
        self.drivers.iter().find(|driver| driver.name == name)
    }
}
