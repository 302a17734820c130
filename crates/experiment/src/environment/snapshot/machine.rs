//! CPU of the machine as a whole, and of processes outside the experiment.
//!
//! The kernel's share is busy time less the CPU of every component and every other user process. It consists
//! of interrupts, soft interrupts that no process was charged for, and kernel threads.
//!
//! Busy time is the window less idle and stolen time, because the kernel counts idle time exactly (if ticks
//! stop in idle) but samples busy time at its timer ticks. A load of 1000 requests/s beats with those ticks:
//! 0.07 busy cores were once counted as 0.006, and once as 0.8. The resolution is still a clock tick, so the
//! remainder is rough over short windows. It is never negative.

use results::{MachineUsage, TopProcess};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of other processes reported by name.
const MAX_NAMED: usize = 3;

/// Minimum CPU of a process reported by name: one clock tick in ten seconds.
const MIN_NAMED_CORES: f64 = 0.001;

/// Counters of the machine since it booted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MachineSnapshot {
    /// Time of the reading, since any fixed moment.
    pub at: Duration,
    /// CPUs that the experiment may use: those online, unless it is restricted to some.
    pub cpus: usize,
    /// There are CPUs that the experiment may not use.
    pub has_other_cpus: bool,
    /// Idle time, including waits for disks; summed over CPUs, like the fields below.
    pub idle: Duration,
    /// Interrupts and soft interrupts that the kernel counted separately.
    pub interrupt: Duration,
    /// Time in which a CPU was runnable but the hypervisor ran something else.
    pub steal: Duration,
    /// User processes outside the experiment.
    pub others: BTreeMap<ProcessId, OtherProcess>,
}

/// Process identity: PIDs are reused, but the pair is unique.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ProcessId {
    /// PID.
    pub pid: i32,
    /// Start time, since boot.
    pub started: Duration,
}

/// A process outside the experiment.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OtherProcess {
    /// Command name.
    pub name: String,
    /// PID of the parent.
    pub parent_pid: i32,
    /// Own CPU time.
    pub cpu: Duration,
    /// CPU time of children that have ended and were waited for.
    pub ended_children: Duration,
    /// It may use none of the experiment's CPUs.
    pub is_elsewhere: bool,
}

impl MachineSnapshot {
    /// Usage since an earlier snapshot. `experiment_cores` is the CPU of all components and the observer.
    pub(super) fn usage_since(&self, open: &Self, experiment_cores: f64) -> MachineUsage {
        let window_s = self.at.saturating_sub(open.at).as_secs_f64();
        let cores = |cpu: Duration| if window_s > 0.0 { cpu.as_secs_f64() / window_s } else { 0.0 };
        let since = |of: fn(&Self) -> Duration| cores(of(self).saturating_sub(of(open)));
        let steal_cores = since(|machine| machine.steal);
        let busy_cores = (self.cpus as f64 - since(|machine| machine.idle) - steal_cores).max(0.0);
        let by_name = cpu_by_name(&open.others, &self.others);
        let everywhere = cores(by_name.values().sum());
        // The kernel does not count a process's time by CPU: at most what the experiment's CPUs were busy with beside it.
        let most = if self.has_other_cpus { (busy_cores - experiment_cores).max(0.0) } else { everywhere };
        let other_processes_cores = everywhere.min(most);
        let share = if everywhere > most { most / everywhere } else { 1.0 };
        let top = by_name.into_iter().map(|(name, cpu)| TopProcess { name, cpu_cores: cores(cpu) * share });
        let mut top: Vec<TopProcess> = top.collect();
        top.retain(|process| process.cpu_cores >= MIN_NAMED_CORES);
        top.sort_by(|a, b| b.cpu_cores.total_cmp(&a.cpu_cores));
        top.truncate(MAX_NAMED);
        MachineUsage {
            window_s,
            cpus: self.cpus,
            busy_cores,
            steal_cores,
            interrupt_cores: since(|machine| machine.interrupt),
            kernel_cores: (busy_cores - experiment_cores - other_processes_cores).max(0.0),
            other_processes_cores,
            top_other_processes: top,
        }
    }
}

/// CPU that other processes used between two readings, by name.
///
/// A process that both started and ended in between appears in neither reading. But its CPU appears in its
/// parent's count of ended children. That count also rises by what a process in the first reading had used
/// before it, so this part is subtracted if that process is gone.
fn cpu_by_name(
    open: &BTreeMap<ProcessId, OtherProcess>,
    close: &BTreeMap<ProcessId, OtherProcess>,
) -> BTreeMap<String, Duration> {
    let mut inherited: BTreeMap<i32, Duration> = BTreeMap::new();
    for (_, ended) in open.iter().filter(|(id, _)| !close.contains_key(id)) {
        *inherited.entry(heir(ended, open, close)).or_default() += ended.all();
    }
    let mut by_name: BTreeMap<String, Duration> = BTreeMap::new();
    for (id, process) in close.iter().filter(|(_, process)| !process.is_elsewhere) {
        let before = open.get(id).cloned().unwrap_or_default();
        let known = inherited.get(&id.pid).copied().unwrap_or_default();
        let used = process.all().saturating_sub(before.all());
        let from_children = process.ended_children.saturating_sub(before.ended_children);
        // Never subtracts more than the children added: a parent may have ignored SIGCHLD.
        let used = used - known.min(from_children).min(used);
        if !used.is_zero() {
            *by_name.entry(process.name.clone()).or_default() += used;
        }
    }
    by_name
}

/// Nearest ancestor that still exists. It accounts for the ended children of an ended parent.
fn heir(
    ended: &OtherProcess,
    open: &BTreeMap<ProcessId, OtherProcess>,
    close: &BTreeMap<ProcessId, OtherProcess>,
) -> i32 {
    let find = |processes: &BTreeMap<ProcessId, OtherProcess>, pid: i32| {
        let numbers = ProcessId { pid, started: Duration::ZERO }..=ProcessId { pid, started: Duration::MAX };
        processes.range(numbers).next().map(|(_, process)| process.parent_pid)
    };
    let mut heir = ended.parent_pid;
    // Bounded: readings are not atomic, so with reused PIDs the parents could form a cycle.
    for _ in 0..open.len() {
        if find(close, heir).is_some() {
            break;
        }
        let Some(parent) = find(open, heir) else { break };
        heir = parent;
    }
    heir
}

impl OtherProcess {
    fn all(&self) -> Duration {
        self.cpu + self.ended_children
    }
}
