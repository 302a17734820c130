//! Counters of every component and of the machine at one moment, and the usage between two such snapshots.
//!
//! Plain values, so that a lab, a cluster and the in-memory environment can all produce them. Counters are
//! totals since the component started. Only [`Snapshot::usage_since`] computes differences.

pub(crate) mod machine;
mod node;
#[cfg(test)]
mod tests;
mod traffic;

pub use machine::{MachineSnapshot, OtherProcess, ProcessId};
pub use node::{CpuSample, NodeSnapshot};
pub use traffic::{Bucket, Buckets, GatewayCounters, GatewaySnapshot, ServiceRate, ServiceSnapshot};

use results::{
    ComponentUsage, GatewayRecord, MachineUsage, NetworkUsage, NodeUsage, ProcessUsage, Role,
    SchedulingUsage, Throttling,
};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Name of the component for the kernel's share.
pub const KERNEL: &str = "kernel";

/// All counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Every component, the drivers first, then along the path.
    pub components: Vec<ComponentSnapshot>,
    /// The machine as a whole; absent if the environment cannot observe it.
    pub machine: Option<MachineSnapshot>,
    /// Nodes of a cluster that have pods of the experiment, as far as known.
    pub nodes: Vec<NodeSnapshot>,
    /// The observer before and after taking this snapshot; absent if it runs on another machine.
    pub observer: Option<Box<[ComponentSnapshot; 2]>>,
    /// Gateways with readable counters.
    pub gateways: Vec<GatewaySnapshot>,
    /// Pods of the drivers' targets with readable counters.
    pub services: Vec<ServiceSnapshot>,
}

/// Counters of one component at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentSnapshot {
    /// Name within the run, such as `client-proxy`.
    pub name: String,
    /// Role of the component.
    pub role: Role,
    /// Its pod; absent for the kernel and the observer.
    pub pod: Option<String>,
    /// Time of the CPU reading, since any fixed moment.
    pub at: Duration,
    /// CPU of all its processes, including ended ones.
    pub cpu: CpuTimes,
    /// See [`ComponentUsage::cpu_source`].
    pub cpu_source: String,
    /// Memory at this moment.
    pub memory: ComponentMemory,
    /// Its processes by PID.
    pub processes: BTreeMap<i32, ProcessSnapshot>,
    /// Traffic of the pod's interface; absent if another component in the pod reports it.
    pub network: Option<NetworkUsage>,
    /// Throttling by its CPU limit.
    pub throttling: Option<Throttling>,
}

/// CPU times of a component since it started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CpuTimes {
    /// Total, as exact as its source.
    pub total: Duration,
    /// User mode. `user + system` may be coarser than the total; only their ratio is used.
    pub user: Duration,
    /// Kernel mode.
    pub system: Duration,
}

/// Memory of a component at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ComponentMemory {
    /// Resident memory of all its processes, bytes; absent if none is left.
    pub resident_bytes: Option<u64>,
    /// Memory charged to its cgroup, less inactive page cache, bytes; absent without a cgroup.
    pub working_set_bytes: Option<u64>,
    /// Anonymous memory, from its cgroup or as the sum over its processes, bytes.
    pub anonymous_bytes: Option<u64>,
}

/// One process of a component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessSnapshot {
    /// Command name.
    pub name: String,
    /// CPU in user mode.
    pub cpu_user: Duration,
    /// CPU in the kernel.
    pub cpu_system: Duration,
    /// Resident memory, bytes; 0 for a dead process.
    pub memory_resident_bytes: u64,
    /// Anonymous part of the resident memory, bytes.
    pub memory_anonymous_bytes: u64,
    /// Context switches by thread ID, across processes.
    pub switches: BTreeMap<i32, SchedulingUsage>,
}

/// Usage between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowUsage {
    /// Every component, then the observer and the kernel's share.
    pub components: Vec<ComponentUsage>,
    /// The machine as a whole; absent if the environment cannot observe it.
    pub machine: Option<MachineUsage>,
    /// Nodes with a newer sample in the second snapshot.
    pub nodes: Vec<NodeUsage>,
    /// Gateways that are in both snapshots.
    pub gateways: Vec<GatewayRecord>,
    /// Services whose pods are all in both snapshots.
    pub services: Vec<ServiceRate>,
}

impl Snapshot {
    /// Usage since an earlier snapshot of the same deployment. Components in only one of the snapshots are
    /// left out.
    #[must_use]
    pub fn usage_since(&self, open: &Self) -> WindowUsage {
        let opened: HashMap<&str, &ComponentSnapshot> =
            open.components.iter().map(|component| (component.name.as_str(), component)).collect();
        let opened_at = open.components.first().map(|component| component.at);
        let usage = |close: &ComponentSnapshot| match (opened.get(close.name.as_str()), opened_at) {
            (Some(open), _) => Some(close.usage_since(open)),
            // Started within the window: counts all of its usage.
            (None, at) => Some(close.usage_since(&ComponentSnapshot::new(&close.name, close.role, at?))),
        };
        let mut components: Vec<ComponentUsage> = self.components.iter().filter_map(usage).collect();
        if let (Some(open), Some(close)) = (&open.observer, &self.observer) {
            // From before the first snapshot until after the last: taking both counts as the observer's own
            // work.
            components.push(close[1].usage_since(&open[0]));
        }
        let experiment_cores = components.iter().map(ComponentUsage::cpu_cores).sum();
        let machines = open.machine.as_ref().zip(self.machine.as_ref());
        let machine = machines.map(|(open, close)| close.usage_since(open, experiment_cores));
        components.extend(machine.as_ref().map(kernel_usage));
        let nodes = self
            .nodes
            .iter()
            .filter_map(|close| close.usage_since(open.nodes.iter().find(|open| open.name == close.name)?));
        let gateways = self.gateways.iter().filter_map(|close| {
            let open = open.gateways.iter().find(|open| open.name == close.name)?;
            Some(close.since(open))
        });
        let services = traffic::service_rates(&open.services, &self.services);
        WindowUsage { components, machine, nodes: nodes.collect(), gateways: gateways.collect(), services }
    }
}

/// The kernel's share as a component, so that the components of a trial add up to the machine.
fn kernel_usage(machine: &MachineUsage) -> ComponentUsage {
    ComponentUsage {
        cpu_system_s: machine.kernel_cores * machine.window_s,
        ..ComponentUsage::new(KERNEL, Role::Kernel, machine.window_s)
    }
}

impl ComponentSnapshot {
    /// A component without any usage yet.
    #[must_use]
    pub fn new(name: impl Into<String>, role: Role, at: Duration) -> Self {
        Self {
            name: name.into(),
            role,
            pod: None,
            at,
            cpu: CpuTimes::default(),
            cpu_source: "proc".to_owned(),
            memory: ComponentMemory::default(),
            processes: BTreeMap::new(),
            network: None,
            throttling: None,
        }
    }

    fn usage_since(&self, open: &Self) -> ComponentUsage {
        let (cpu_user_s, cpu_system_s) = self.cpu.split_since(open.cpu);
        // The cgroup of a component that has just ended shows only memory that the kernel has not reclaimed yet. On clusters,
        // resident memory is never known.
        let has_ended = self.memory.resident_bytes.is_none() && open.memory.resident_bytes.is_some();
        let memory = if has_ended { open.memory } else { self.memory };
        let window_s = self.at.saturating_sub(open.at).as_secs_f64();
        ComponentUsage {
            pod: self.pod.clone(),
            cpu_user_s,
            cpu_system_s,
            cpu_source: self.cpu_source.clone(),
            memory_resident_bytes: memory.resident_bytes.unwrap_or(0),
            memory_working_set_bytes: memory.working_set_bytes,
            memory_anonymous_bytes: memory.anonymous_bytes,
            processes: self.processes_since(open),
            network: open.network.zip(self.network).map(|(open, close)| NetworkUsage {
                received_bytes: close.received_bytes.saturating_sub(open.received_bytes),
                sent_bytes: close.sent_bytes.saturating_sub(open.sent_bytes),
            }),
            scheduling: self.switches_since(open),
            throttling: open.throttling.zip(self.throttling).map(|(open, close)| Throttling {
                periods: close.periods.saturating_sub(open.periods),
                of_periods: open
                    .of_periods
                    .zip(close.of_periods)
                    .map(|(open, close)| close.saturating_sub(open)),
                time_s: (close.time_s - open.time_s).max(0.0),
            }),
            ..ComponentUsage::new(&self.name, self.role, window_s)
        }
    }

    /// Usage per process, if the component has several.
    fn processes_since(&self, open: &Self) -> Vec<ProcessUsage> {
        if self.processes.len() < 2 {
            return Vec::new();
        }
        let usage = |(pid, close): (&i32, &ProcessSnapshot)| {
            let open = open
                .processes
                .get(pid)
                .map_or_else(Default::default, |open| [open.cpu_user, open.cpu_system]);
            ProcessUsage {
                name: close.name.clone(),
                cpu_user_s: close.cpu_user.saturating_sub(open[0]).as_secs_f64(),
                cpu_system_s: close.cpu_system.saturating_sub(open[1]).as_secs_f64(),
                memory_resident_bytes: close.memory_resident_bytes,
                memory_anonymous_bytes: Some(close.memory_anonymous_bytes),
            }
        };
        self.processes.iter().map(usage).collect()
    }

    /// Context switches of all threads; absent if a thread has ended since, because its count is lost.
    fn switches_since(&self, open: &Self) -> Option<SchedulingUsage> {
        let (open, close) = (open.switches(), self.switches());
        if open.is_empty() || open.keys().any(|thread| !close.contains_key(thread)) {
            return None;
        }
        let mut sum = SchedulingUsage::default();
        for (thread, close) in close {
            let open = open.get(&thread).copied().unwrap_or_default();
            sum.voluntary_switches += close.voluntary_switches.saturating_sub(open.voluntary_switches);
            sum.involuntary_switches += close.involuntary_switches.saturating_sub(open.involuntary_switches);
        }
        Some(sum)
    }

    fn switches(&self) -> HashMap<i32, SchedulingUsage> {
        self.processes
            .values()
            .flat_map(|process| &process.switches)
            .map(|(tid, count)| (*tid, *count))
            .collect()
    }
}

impl CpuTimes {
    /// User and system seconds since an earlier reading: the exact total, split in the ratio of the (perhaps
    /// coarser) parts.
    fn split_since(self, open: Self) -> (f64, f64) {
        let total_s = self.total.saturating_sub(open.total).as_secs_f64();
        let user_s = self.user.saturating_sub(open.user).as_secs_f64();
        let system_s = self.system.saturating_sub(open.system).as_secs_f64();
        // Shorter than a clock tick: the split is unknown.
        let user_share = if user_s + system_s > 0.0 { user_s / (user_s + system_s) } else { 1.0 };
        (total_s * user_share, total_s * (1.0 - user_share))
    }
}

impl ComponentMemory {
    /// Defined as [`ComponentUsage::memory_bytes`].
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.resident_bytes.max(self.working_set_bytes)
    }
}
