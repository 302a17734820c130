//! Topologies: workloads, the calls between them, and drivers that offer load.
//!
//! Pure values. Built-in topologies are in [`shapes`], files in [`mod@file`], and expected request counts in
//! [`expected`]. [`crate::dataplane`] has the proxies of workloads. [`crate::environment`] is the interface
//! to what runs a topology.

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

/// Index of a workload in [`Topology::workloads`].
pub type WorkloadId = usize;

/// Workloads, calls between them, and drivers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// Name that users type, such as `pair`.
    pub name: String,
    /// Every workload; `(namespace, name)` is unique.
    pub workloads: Vec<Workload>,
    /// Edges of the graph, including those of the drivers.
    pub calls: Vec<Call>,
    /// Drivers in the order in which results show them; names are unique.
    pub drivers: Vec<DriverPlacement>,
}

/// A set of identical pods.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name within its namespace; also of its Service, service account and pods.
    pub name: String,
    /// Namespace within the topology; empty if the topology has a single one. An environment may add a
    /// prefix.
    pub namespace: String,
    /// Number of pods.
    pub replicas: usize,
    /// Protocol of its requests.
    pub protocol: Protocol,
    /// Resource requests and limits of each pod's application container, or of each driver.
    pub resources: Resources,
    /// What its pods run.
    pub runs: Runs,
    /// True if it belongs to the mesh in modes that have one. Only members get a proxy.
    pub in_mesh: bool,
}

/// What the pods of a workload run.
#[derive(Clone, Debug, PartialEq)]
pub enum Runs {
    /// Only drivers, which are started in the pod.
    Drivers,
    /// The synthetic service (`meshmeter serve`).
    Service(ServerSettings),
    /// External synthetic service: it speaks TLS itself, and calls to it take the mode's exit.
    ExternalService(ServerSettings),
    /// Service whose endpoints have scripts (`meshmeter serve --topology`).
    Scripted(ScriptedService),
    /// External database that speaks MongoDB's protocol over TLS: queries to it take the mode's exit.
    Database,
}

/// Resource requests and limits of a container; absent: no request, or no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resources {
    /// CPU request, cores.
    pub cpu_request_cores: Option<f64>,
    /// CPU limit, cores.
    pub cpu_limit_cores: Option<f64>,
    /// Memory request, bytes.
    pub memory_request_bytes: Option<u64>,
    /// Memory limit, bytes.
    pub memory_limit_bytes: Option<u64>,
}

impl Resources {
    /// Only a CPU limit, if given.
    #[must_use]
    pub fn cpu_limit(cpu_limit_cores: Option<f64>) -> Self {
        Self { cpu_limit_cores, ..Self::default() }
    }
}

/// Edge: one workload sends requests to another.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Call {
    /// Caller.
    pub from: WorkloadId,
    /// Callee.
    pub to: WorkloadId,
}

/// Driver: where it runs, and its target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DriverPlacement {
    /// Name, unique among the drivers.
    pub name: String,
    /// Workload in whose pods it runs: one generator per pod, which share its load.
    pub at: WorkloadId,
    /// Target workload.
    pub target: WorkloadId,
    /// Path of the requested endpoint.
    pub endpoint: String,
}

/// A name, numbered from 1 if there are several.
fn numbered(name: String, count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(move |number| if count == 1 { name.clone() } else { format!("{name}-{number}") })
}

impl Workload {
    /// Name that is unique in the topology: `name`, or `namespace/name` in a topology with several
    /// namespaces.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// Names of its pods: the qualified name, numbered from 1 if there are several.
    pub fn pod_names(&self) -> impl Iterator<Item = String> + '_ {
        numbered(self.qualified_name(), self.replicas)
    }

    /// Settings of the synthetic service, if it runs one.
    #[must_use]
    pub fn service(&self) -> Option<&ServerSettings> {
        match &self.runs {
            Runs::Service(settings) | Runs::ExternalService(settings) => Some(settings),
            Runs::Drivers | Runs::Scripted(_) | Runs::Database => None,
        }
    }

    /// Endpoints with their scripts, if it has them.
    #[must_use]
    pub fn script(&self) -> Option<&ScriptedService> {
        match &self.runs {
            Runs::Scripted(service) => Some(service),
            _ => None,
        }
    }

    /// Size of a reply over TCP, bytes. Both ends must use the same value.
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

    /// True if it serves requests.
    #[must_use]
    pub fn serves(&self) -> bool {
        !matches!(self.runs, Runs::Drivers)
    }

    /// True if it is outside the mesh in every mode.
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

    /// Index of the workload with this qualified name.
    #[must_use]
    pub fn find(&self, qualified_name: &str) -> Option<WorkloadId> {
        self.workloads.iter().position(|workload| workload.qualified_name() == qualified_name)
    }

    /// Target of the first driver.
    #[must_use]
    pub fn target(&self) -> Option<&Workload> {
        Some(&self.workloads[self.drivers.first()?.target])
    }

    /// Gives every driver this number of generators, each in its own pod.
    pub(crate) fn set_generators(&mut self, generators: usize) {
        for driver in &self.drivers {
            self.workloads[driver.at].replicas = generators;
        }
    }

    /// Names of a driver's generators: the driver's name, numbered from 1 if there are several.
    pub fn generator_names(&self, driver: &DriverPlacement) -> impl Iterator<Item = String> + use<> {
        numbered(driver.name.clone(), self.workloads[driver.at].replicas)
    }

    /// Driver with this name.
    #[must_use]
    pub fn driver(&self, name: &str) -> Option<&DriverPlacement> {
        self.drivers.iter().find(|driver| driver.name == name)
    }
}
