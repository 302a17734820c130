//! Usage of components over the valid trials of a cell.

use crate::component::Role;
use crate::estimate::Estimate;
use crate::footprint::{ConfigurationSummary, HeapSummary};
use serde::{Deserialize, Serialize};

/// Usage of all components of a role together, over the valid trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleTotal {
    /// Role of the components.
    pub role: Role,
    /// Number of components.
    pub components: usize,
    /// Mean CPU, cores.
    pub cpu_cores: Estimate,
    /// CPU per 1000 completed requests/s, cores: the same number as milliseconds of CPU per request.
    pub cpu_cores_per_1000_rps: Estimate,
    /// Memory under load, bytes. Shared pages count for each component.
    pub memory_bytes: Option<Estimate>,
    /// Working set under load, bytes, as a cluster shows it; absent if not all components have one, and in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_working_set_bytes: Option<Estimate>,
    /// Anonymous part of it, bytes: pages that are not shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<Estimate>,
}

/// Usage of one component over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentSummary {
    /// Name within the run.
    pub name: String,
    /// Role of the component.
    pub role: Role,
    /// Mean CPU, cores.
    pub cpu_cores: Estimate,
    /// CPU per 1000 completed requests/s, cores.
    pub cpu_cores_per_1000_rps: Estimate,
    /// Memory under load, at the end of the window, bytes: the maximum of resident memory and working set;
    /// absent for the kernel. The working set excludes file pages that another cgroup read first; resident
    /// memory excludes kernel buffers.
    pub memory_bytes: Option<Estimate>,
    /// Resident memory of all its processes under load, including pages of program files, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_resident_bytes: Option<Estimate>,
    /// Working set under load: memory charged to its cgroup, less what the kernel could drop at once, bytes.
    /// Clusters report it per container. File pages are included only if no other cgroup had read them
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_working_set_bytes: Option<Estimate>,
    /// Anonymous memory under load (heaps and stacks), bytes: the cost of one more instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<Estimate>,
    /// `memory_bytes` before the generator started; absent if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_before_load_bytes: Option<Estimate>,
    /// `memory_bytes` after the generator had ended; absent if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_after_load_bytes: Option<Estimate>,
    /// Anonymous memory before the generator started, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_before_load_bytes: Option<Estimate>,
    /// Anonymous memory after the generator had ended, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_after_load_bytes: Option<Estimate>,
    /// Heap reported by the proxy before the generator started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_before_load: Option<HeapSummary>,
    /// Heap reported by the proxy after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_after_load: Option<HeapSummary>,
    /// Configuration of the proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ConfigurationSummary>,
    /// Propagation: from the API's response to the last write until the proxy shows the resulting
    /// configuration, seconds; absent if nothing configures the proxy while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured_in_s: Option<Estimate>,
    /// For a gateway that serves domains: propagation of one further domain, written after the load, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub further_domain_in_s: Option<Estimate>,
    /// Distinct reasons why parts of a proxy's footprint could not be read; empty if there were no problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Bytes received by the pod's interface, per second.
    pub network_bytes_received_s: Option<Estimate>,
    /// Bytes sent by the pod's interface, per second.
    pub network_bytes_sent_s: Option<Estimate>,
}
