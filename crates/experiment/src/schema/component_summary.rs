//! What components used, over the valid trials of a cell.

use super::component::Role;
use super::estimate::Estimate;
use super::holdings::{ConfigurationSummary, HeapSummary};
use serde::{Deserialize, Serialize};

/// What all components of a role used together, over the valid trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleTotal {
    /// What they are for.
    pub role: Role,
    /// How many they are.
    pub components: usize,
    /// Mean CPU, cores.
    pub cpu_cores: Estimate,
    /// The same for every 1000 completed requests a second: that many milliseconds of CPU for each request.
    pub cpu_cores_per_1000_rps: Estimate,
    /// Memory under load, bytes. Pages that they share count for each.
    pub memory_bytes: Option<Estimate>,
    /// Of which anonymous: pages that nobody shares, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<Estimate>,
}

/// What one component used, over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentSummary {
    /// Name within the run.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Mean CPU, cores.
    pub cpu_cores: Estimate,
    /// The same for every 1000 completed requests a second.
    pub cpu_cores_per_1000_rps: Estimate,
    /// Memory under load, at the end of the window: resident memory, or the working set where that is more (the working set
    /// leaves out file pages that another group read first, resident memory leaves out the kernel's buffers), bytes; absent
    /// for the kernel.
    pub memory_bytes: Option<Estimate>,
    /// Under load, resident memory of all its processes, pages of their programs' files included, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_resident_bytes: Option<Estimate>,
    /// Under load, what its control group is charged with, less what the kernel could drop at once: what a cluster shows for
    /// a container, bytes. Pages of files are in it only where no other group had read them before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_working_set_bytes: Option<Estimate>,
    /// Under load, anonymous memory (heaps and stacks: pages of no file), bytes: what one more of it would take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<Estimate>,
    /// `memory_bytes` before the generator started; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_before_load_bytes: Option<Estimate>,
    /// The same after the generator had ended; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_after_load_bytes: Option<Estimate>,
    /// Anonymous memory before the generator started, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_before_load_bytes: Option<Estimate>,
    /// The same after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_after_load_bytes: Option<Estimate>,
    /// A proxy's own account of its heap before the generator started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_before_load: Option<HeapSummary>,
    /// The same after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_after_load: Option<HeapSummary>,
    /// What a proxy was configured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ConfigurationSummary>,
    /// From the API's answer to the last object written to the moment at which a proxy showed what follows from them,
    /// seconds; absent where nothing configures the proxy while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured_in_s: Option<Estimate>,
    /// Of a gateway that serves domains: the same of one further domain, written after the load, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub further_domain_in_s: Option<Estimate>,
    /// Why something that a proxy holds could not be read, each reason once; empty where nothing was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Received by the pod's interface, bytes a second.
    pub network_bytes_received_s: Option<Estimate>,
    /// Sent by the pod's interface, bytes a second.
    pub network_bytes_sent_s: Option<Estimate>,
}
