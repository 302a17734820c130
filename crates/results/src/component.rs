//! Usage of one component in the measured window of a trial.

use crate::footprint::ProxyFootprint;
use serde::{Deserialize, Serialize};

/// Role of a component.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A proxy of the mesh.
    Proxy,
    /// The application under the mesh.
    App,
    /// The load generator.
    Generator,
    /// Component that configures the proxies.
    ControlPlane,
    /// Service called by filters of a proxy, such as an authorization service.
    FilterService,
    /// Kernel CPU that is not charged to any process of the experiment.
    Kernel,
    /// Sampling by Meshmeter itself.
    Observer,
}

/// Usage of one component in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentUsage {
    /// Name within the run, such as `client-proxy`.
    pub name: String,
    /// Role of the component.
    pub role: Role,
    /// Pod that it runs in; absent for the kernel and the observer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Time between the two readings of its counters, seconds.
    pub window_s: f64,
    /// User-mode CPU over the window, seconds.
    pub cpu_user_s: f64,
    /// Kernel-mode CPU over the window, seconds.
    pub cpu_system_s: f64,
    /// Source of the CPU figures: `cgroup-v1`, `cgroup-v2` or `proc`; for services and proxies of a cluster,
    /// `kubelet` or `prometheus`.
    pub cpu_source: String,
    /// Resident memory of all its processes at the end of the window, bytes; 0 if unknown, as on clusters.
    pub memory_resident_bytes: u64,
    /// Working set at the end of the window: memory in use less what the kernel could drop at once (inactive
    /// page cache), as a kubelet reports it, bytes; absent if no cgroup reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_working_set_bytes: Option<u64>,
    /// Anonymous memory at the end of the window (heaps and stacks), bytes, from its cgroup, or as the sum
    /// over its processes if no cgroup reports it; absent if neither does. It includes pages that an
    /// allocator has freed lazily until the kernel reclaims them; the working set does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<u64>,
    /// Memory before the generator started: the maximum of resident memory and working set, bytes; absent if
    /// not read, as for the generator and the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_before_load_bytes: Option<u64>,
    /// Memory after the generator had ended, defined in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_after_load_bytes: Option<u64>,
    /// Anonymous memory before the generator started, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_before_load_bytes: Option<u64>,
    /// Anonymous memory after the generator had ended, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_after_load_bytes: Option<u64>,
    /// Footprint reported by the proxy; absent for other components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdings: Option<ProxyFootprint>,
    /// Usage per process, if the component has several, such as an agent and the Envoy that it runs. The
    /// component's own figures include all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessUsage>,
    /// Traffic of the pod's network interface; absent if another component in the pod reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUsage>,
    /// Context switches in the window; absent for the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<SchedulingUsage>,
    /// Throttling by the CPU limit in the window; absent if no cgroup reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
}

/// True if a program of the control plane of this name is an istiod: the revision may follow.
pub(super) fn is_istiod(name: &str) -> bool {
    name.starts_with("istiod")
}

impl ComponentUsage {
    /// True for usage of an istiod.
    #[must_use]
    pub fn is_istiod(&self) -> bool {
        self.role == Role::ControlPlane && is_istiod(&self.name)
    }

    /// A component without any readings except the time between the two readings: no CPU (source `proc`), no
    /// memory, nothing else.
    #[must_use]
    pub fn new(name: impl Into<String>, role: Role, window_s: f64) -> Self {
        Self {
            name: name.into(),
            role,
            pod: None,
            window_s,
            cpu_user_s: 0.0,
            cpu_system_s: 0.0,
            cpu_source: "proc".to_owned(),
            memory_resident_bytes: 0,
            memory_working_set_bytes: None,
            memory_anonymous_bytes: None,
            memory_before_load_bytes: None,
            memory_after_load_bytes: None,
            memory_anonymous_before_load_bytes: None,
            memory_anonymous_after_load_bytes: None,
            holdings: None,
            processes: Vec::new(),
            network: None,
            scheduling: None,
            throttling: None,
        }
    }

    /// Mean CPU over the window, cores.
    #[must_use]
    pub fn cpu_cores(&self) -> f64 {
        if self.window_s > 0.0 { (self.cpu_user_s + self.cpu_system_s) / self.window_s } else { 0.0 }
    }

    /// A count in the window as a rate per second.
    #[must_use]
    pub fn per_s(&self, count: u64) -> Option<f64> {
        (self.window_s > 0.0).then(|| count as f64 / self.window_s)
    }

    /// Memory at the end of the window, bytes: the maximum of resident memory and working set; absent for the
    /// kernel. The working set excludes file pages that another cgroup read first; resident memory excludes
    /// kernel buffers.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        let bytes = self.memory_resident_bytes.max(self.memory_working_set_bytes.unwrap_or(0));
        (self.role != Role::Kernel).then_some(bytes)
    }
}

/// Usage of one process of a component in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Command name, such as `envoy`.
    pub name: String,
    /// User-mode CPU, seconds. Counted in clock ticks (10 ms), so coarser than the component's own figure.
    pub cpu_user_s: f64,
    /// Kernel-mode CPU, seconds, equally coarse.
    pub cpu_system_s: f64,
    /// Resident memory at the end of the window, bytes. Shared pages, such as those of the program, count for
    /// each process.
    pub memory_resident_bytes: u64,
    /// Anonymous part of it (heap and stacks), bytes; absent in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<u64>,
}

/// Traffic of a pod's interface in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkUsage {
    /// Bytes received, with link headers.
    pub received_bytes: u64,
    /// Bytes sent, with link headers.
    pub sent_bytes: u64,
}

/// Context switches of all threads of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchedulingUsage {
    /// Voluntary switches: the thread waited for something.
    pub voluntary_switches: u64,
    /// Involuntary switches: the thread was preempted.
    pub involuntary_switches: u64,
}

/// Throttling by a CPU limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throttling {
    /// Enforcement periods in which the component was throttled.
    pub periods: u64,
    /// Enforcement periods in which the component was runnable; absent in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_periods: Option<u64>,
    /// Throttled time, seconds.
    pub time_s: f64,
}
