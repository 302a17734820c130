//! What the pods of a cell reserve, beside what they used.

use super::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Counts of a cell's objects, and what groups of containers reserve and use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReservationSummary {
    /// Namespaces of the topology.
    pub namespaces: usize,
    /// Workloads that serve requests: each has a Service.
    pub services: usize,
    /// Workloads of the topology, clients included: Deployments in a cluster.
    pub workloads: usize,
    /// Pods of the topology and of the mesh.
    pub pods: usize,
    /// Containers in them; a sidecar is one.
    pub containers: usize,
    /// Proxies of the mesh.
    pub proxies: usize,
    /// The application, the generators, the mesh; those without a container are left out.
    pub groups: Vec<GroupReservation>,
}

/// Containers that are counted together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceGroup {
    /// Services and databases.
    App,
    /// Load generators.
    Generators,
    /// Proxies and istiod; what a cluster has without a mesh, such as an API server, is not in it.
    Mesh,
}

impl ResourceGroup {
    /// As in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Generators => "generators",
            Self::Mesh => "mesh",
        }
    }
}

/// What a group of containers reserves and used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupReservation {
    /// The group.
    pub group: ResourceGroup,
    /// How many containers.
    pub containers: usize,
    /// CPU requests, cores: of the topology, and Istio's defaults for the mesh.
    pub reserved_cpu_cores: f64,
    /// Memory requests, bytes.
    pub reserved_memory_bytes: f64,
    /// Mean CPU in the window, cores; absent without a valid trial.
    pub used_cpu_cores: Option<Estimate>,
    /// Working set at the end of the window, bytes; absent where that of some container was not read.
    pub used_memory_bytes: Option<Estimate>,
}

impl ReservationSummary {
    /// The group; absent where it has no container.
    #[must_use]
    pub fn group(&self, group: ResourceGroup) -> Option<&GroupReservation> {
        self.groups.iter().find(|one| one.group == group)
    }

    /// Whether the topology reserves anything.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.groups.iter().any(|group| group.group != ResourceGroup::Mesh && group.reserved_cpu_cores > 0.0)
    }
}
