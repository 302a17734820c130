//! The machine as a whole, and processes outside the experiment.
//!
//! The kernel's share is busy time less every component and every other user process: interrupts, soft interrupts that no
//! process was charged for, and kernel threads. Busy time is the window less idle and stolen time: the kernel counts idle
//! time exactly (where ticks stop in idle), but busy time by samples at its timer ticks, and a load of 1000 requests/s
//! beats in step with those: 0.07 busy cores were seen counted as 0.006, and as 0.8. Resolution is still a clock tick, so
//! the remainder is rough over short windows; it is never negative.

use crate::schema::machine::{MachineUsage, TopProcess};
use std::collections::BTreeMap;
use std::time::Duration;

/// Number of other processes that are named.
const MAX_NAMED: usize = 3;

/// Processes below this are not named: one clock tick in ten seconds.
const MIN_NAMED_CORES: f64 = 0.001;

/// Counters of the machine since it booted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MachineSnapshot {
    /// When it was read, since any fixed moment.
    pub at: Duration,
    /// CPUs online.
    pub cpus: usize,
    /// Idle, or waiting for disks only; sum over CPUs, like the following.
    pub idle: Duration,
    /// Interrupts and soft interrupts that the kernel counted separately.
    pub interrupt: Duration,
    /// A CPU wanted to run and the hypervisor ran something else.
    pub steal: Duration,
    /// User processes outside the experiment.
    pub others: BTreeMap<ProcessId, OtherProcess>,
}

/// Identifies a process: numbers are reused, the pair is not.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ProcessId {
    /// Its number.
    pub pid: i32,
    /// When it started, since boot.
    pub started: Duration,
}

/// A process outside the experiment.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OtherProcess {
    /// Command name.
    pub name: String,
    /// The parent's number.
    pub parent_pid: i32,
    /// CPU of its own.
    pub cpu: Duration,
    /// CPU of its children that have ended and were waited for.
    pub ended_children: Duration,
}

impl MachineSnapshot {
    /// Usage since an earlier snapshot. `experiment_cores`: used by all components and the observer.
    pub(super) fn usage_since(&self, open: &Self, experiment_cores: f64) -> MachineUsage {
        let window_s = self.at.saturating_sub(open.at).as_secs_f64();
        let cores = |cpu: Duration| if window_s > 0.0 { cpu.as_secs_f64() / window_s } else { 0.0 };
        let since = |of: fn(&Self) -> Duration| cores(of(self).saturating_sub(of(open)));
        let steal_cores = since(|machine| machine.steal);
        let busy_cores = (self.cpus as f64 - since(|machine| machine.idle) - steal_cores).max(0.0);
        let by_name = cpu_by_name(&open.others, &self.others);
        let other_processes_cores = cores(by_name.values().sum());
        let mut top: Vec<TopProcess> =
            by_name.into_iter().map(|(name, cpu)| TopProcess { name, cpu_cores: cores(cpu) }).collect();
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
/// A process that both began and ended in between appears in neither reading, but its parent's count of ended children
/// rises by all that it used. That rise also holds what a process seen in the first reading had used before it, which is
/// therefore taken off again where that process is gone.
fn cpu_by_name(
    open: &BTreeMap<ProcessId, OtherProcess>,
    close: &BTreeMap<ProcessId, OtherProcess>,
) -> BTreeMap<String, Duration> {
    let mut inherited: BTreeMap<i32, Duration> = BTreeMap::new();
    for (_, ended) in open.iter().filter(|(id, _)| !close.contains_key(id)) {
        *inherited.entry(heir(ended, open, close)).or_default() += ended.all();
    }
    let mut by_name: BTreeMap<String, Duration> = BTreeMap::new();
    for (id, process) in close {
        let before = open.get(id).cloned().unwrap_or_default();
        let known = inherited.get(&id.pid).copied().unwrap_or_default();
        let used = process.all().saturating_sub(before.all());
        let from_children = process.ended_children.saturating_sub(before.ended_children);
        // Never more is taken off than the children brought: a parent may have ignored their end.
        let used = used - known.min(from_children).min(used);
        if !used.is_zero() {
            *by_name.entry(process.name.clone()).or_default() += used;
        }
    }
    by_name
}

/// The nearest ancestor that still exists: the ended children of an ended parent count for it.
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
    // Readings are not of one instant, so that parents could form a ring where numbers were reused: bounded.
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
