//! Resources reserved by the pods of a cell, and used.

use crate::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Object counts of a cell, and resources reserved and used by groups of containers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReservationSummary {
    /// Namespaces of the topology.
    pub namespaces: usize,
    /// Workloads that serve requests. Each has a Service.
    pub services: usize,
    /// Workloads of the topology, clients included. In a cluster, each is a Deployment.
    pub workloads: usize,
    /// Pods of the topology and of the mesh.
    pub pods: usize,
    /// Containers in the pods. A sidecar is one.
    pub containers: usize,
    /// Proxies of the mesh.
    pub proxies: usize,
    /// Groups: application, generators, mesh. Groups without a container are left out.
    pub groups: Vec<GroupReservation>,
}

/// Group of containers that are counted together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceGroup {
    /// Services and databases.
    App,
    /// Load generators.
    Generators,
    /// Proxies and istiod, without components that a cluster also has without a mesh, such as an API server.
    Mesh,
}

impl ResourceGroup {
    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Generators => "generators",
            Self::Mesh => "mesh",
        }
    }
}

/// Resources reserved and used by a group of containers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupReservation {
    /// The group.
    pub group: ResourceGroup,
    /// Number of containers.
    pub containers: usize,
    /// CPU requests, cores: those of the topology, and Istio's defaults for the mesh.
    pub reserved_cpu_cores: f64,
    /// Memory requests, bytes.
    pub reserved_memory_bytes: f64,
    /// Mean CPU in the window, cores; absent without a valid trial.
    pub used_cpu_cores: Option<Estimate>,
    /// Working set at the end of the window, bytes; absent if it was not read for some container.
    pub used_memory_bytes: Option<Estimate>,
}

impl ReservationSummary {
    /// Group of this kind; absent if it has no container.
    #[must_use]
    pub fn group(&self, group: ResourceGroup) -> Option<&GroupReservation> {
        self.groups.iter().find(|one| one.group == group)
    }

    /// True if the topology reserves anything.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.groups.iter().any(|group| group.group != ResourceGroup::Mesh && group.reserved_cpu_cores > 0.0)
    }
}
