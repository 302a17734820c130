//! What one component used in the measured window of a trial.

use super::holdings::ProxyHoldings;
use serde::{Deserialize, Serialize};

/// What a component is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A proxy of the mesh.
    Proxy,
    /// The application under the mesh.
    App,
    /// The load generator.
    Generator,
    /// What configures the proxies.
    ControlPlane,
    /// A service that filters of a proxy ask about requests, such as an authorization service.
    FilterService,
    /// CPU that the kernel spent for no process of the experiment.
    Kernel,
    /// Meshmeter's own sampling.
    Observer,
}

/// What one component used in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentUsage {
    /// Name within the run, such as `client-proxy`.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The pod that it runs in; absent for the kernel and the observer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Time between the two readings of its counters, seconds.
    pub window_s: f64,
    /// CPU in user mode over the window, seconds.
    pub cpu_user_s: f64,
    /// CPU in the kernel over the window, seconds.
    pub cpu_system_s: f64,
    /// Where the CPU figures come from: `cgroup-v1`, `cgroup-v2` or `proc`; of services and proxies of a cluster `kubelet` or
    /// `prometheus`.
    pub cpu_source: String,
    /// Resident memory of all its processes at the end of the window, bytes; 0 where nothing tells it, as on clusters.
    pub memory_resident_bytes: u64,
    /// Memory in use less what the kernel could drop at once (inactive page cache), as a kubelet counts it, at the end of the window, bytes;
    /// absent where no cgroup tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_working_set_bytes: Option<u64>,
    /// Anonymous memory at the end of the window (heaps and stacks: pages of no file), as its control group counts it, or
    /// the sum of its processes where no group tells it, bytes; absent where nothing does. Pages that an allocator has
    /// given back lazily are in it until the kernel takes them, and not in the working set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<u64>,
    /// Memory before the generator started: the greater of resident memory and working set, bytes; absent where it was not
    /// read, as for the generator and the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_before_load_bytes: Option<u64>,
    /// The same after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_after_load_bytes: Option<u64>,
    /// Anonymous memory before the generator started, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_before_load_bytes: Option<u64>,
    /// The same after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_after_load_bytes: Option<u64>,
    /// What a proxy says of itself; absent for what is no proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdings: Option<ProxyHoldings>,
    /// What each process used, where the component has several: an agent and the Envoy that it runs. The component's own
    /// figures are those of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessUsage>,
    /// Traffic of the pod's network interface; absent where the component shares it with one nearer to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUsage>,
    /// Context switches in the window; absent for the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<SchedulingUsage>,
    /// Throttling by the CPU limit in the window; absent where no cgroup tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
}

impl ComponentUsage {
    /// A component of which nothing was read but the time between two readings: no CPU (as the process table, `proc`, would
    /// have it), no memory, nothing else.
    #[must_use]
    pub fn of(name: impl Into<String>, role: Role, window_s: f64) -> Self {
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

    /// Memory at the end of the window: resident memory, or the working set where that is more (the working set leaves out
    /// file pages that another group read first, resident memory leaves out the kernel's buffers), bytes; absent for the
    /// kernel.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        let bytes = self.memory_resident_bytes.max(self.memory_working_set_bytes.unwrap_or(0));
        (self.role != Role::Kernel).then_some(bytes)
    }
}

/// What one process of a component used in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Its name as the kernel has it, such as `envoy`.
    pub name: String,
    /// CPU in user mode, seconds; counted in ticks of the clock (10 ms), coarser than the component's own.
    pub cpu_user_s: f64,
    /// CPU in the kernel, seconds, as coarse.
    pub cpu_system_s: f64,
    /// Resident memory at the end of the window, bytes. Pages that processes share, such as their program's, count for each.
    pub memory_resident_bytes: u64,
    /// Of which anonymous (heap and stacks), bytes; absent in older results.
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
    /// The thread waited for something.
    pub voluntary_switches: u64,
    /// The thread was made to give way.
    pub involuntary_switches: u64,
}

/// Throttling by a CPU limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throttling {
    /// Enforcement periods in which the component was throttled.
    pub periods: u64,
    /// Enforcement periods in which the component wanted to run; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_periods: Option<u64>,
    /// Time for which it was throttled, seconds.
    pub time_s: f64,
}
