//! One component's counters at both ends of the window, and what it used in between.
//!
//! A process that has just ended (a generator at the end of its window) may tell no more than its CPU; its other figures
//! are then those of the window's opening, or absent.
//!
//! CPU comes from the component's cgroup where it has one: exact, with all processes in it, dead ones included. Else it
//! comes from `/proc`, which counts in clock ticks. Each reading carries its own time, and each component's usage covers
//! the time between its own two readings.

use super::container::{self, ProcessReading};
use super::process::{self, InterfaceBytes, Interfaces, ProcessMemory, Switches};
use crate::cgroup::{self, Cgroup, Version};
use experiment::schema::{ComponentUsage, NetworkUsage, ProcessUsage, Role, SchedulingUsage, Throttling};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A component to watch.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Such as `client-proxy`.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Its pod.
    pub pod: String,
    /// Its process, as numbered in our PID namespace.
    pub pid: i32,
    /// Its cgroup, where the lab has any.
    pub cgroup: Option<Cgroup>,
    /// The pod's network interface, where this component is the one nearest to it.
    pub interface: Option<String>,
}

/// CPU times of a component since it started.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CpuTimes {
    /// In all, nanoseconds.
    pub total_ns: u64,
    /// In user mode, nanoseconds; as a share of `user_ns + system_ns` it may be coarser than the total.
    pub user_ns: u64,
    /// In the kernel, nanoseconds.
    pub system_ns: u64,
}

/// What a component holds at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Memory {
    /// Resident memory of all its processes, bytes; absent where none has any left.
    pub resident_bytes: Option<u64>,
    /// What its control group is charged with, less inactive page cache, bytes; absent where no group tells it.
    pub working_set_bytes: Option<u64>,
    /// Anonymous memory, as its control group counts it or as the sum of its processes, bytes.
    pub anonymous_bytes: Option<u64>,
}

impl Memory {
    /// As [`ComponentUsage::memory_bytes`] has it.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.resident_bytes.max(self.working_set_bytes)
    }
}

/// What a component had used at one moment.
#[derive(Clone, Debug)]
pub struct ComponentReading {
    at: Instant,
    cpu: CpuTimes,
    processes: BTreeMap<i32, ProcessReading>,
    memory: Memory,
    interfaces: Option<Arc<Interfaces>>,
    interface: Option<InterfaceBytes>,
    throttling: Option<cgroup::Throttling>,
}

impl Watched {
    /// Where the CPU figures come from, as results name it.
    fn cpu_source(&self) -> &'static str {
        match self.cgroup.as_ref().map(Cgroup::version) {
            Some(Version::V1) => "cgroup-v1",
            Some(Version::V2) => "cgroup-v2",
            None => "proc",
        }
    }

    /// Reads every counter now, CPU first. `open` is the reading at the window's opening, where this is not that one.
    ///
    /// # Errors
    /// Where its CPU cannot be read: the component is gone, or its cgroup.
    pub fn read(
        &self,
        open: Option<&ComponentReading>,
        ticks_per_second: u64,
    ) -> io::Result<ComponentReading> {
        let proc = Path::new("/proc");
        let (cpu, at, processes) = match &self.cgroup {
            Some(cgroup) => {
                let (cpu, at) = (cgroup_cpu(cgroup)?, Instant::now());
                (cpu, at, container::read(proc, self.pid, Some(cgroup)))
            }
            None => {
                let (processes, at) = (container::read(proc, self.pid, None), Instant::now());
                (process_cpu(proc, self.pid, &processes, ticks_per_second)?, at, processes)
            }
        };
        let interfaces = match open {
            Some(open) => open.interfaces.clone(),
            None if self.interface.is_some() => Interfaces::of(proc, self.pid).ok().map(Arc::new),
            None => None,
        };
        let interface = interfaces.as_ref().zip(self.interface.as_ref());
        Ok(ComponentReading {
            at,
            cpu,
            memory: self.memory_of(&processes),
            processes,
            interface: interface.and_then(|(interfaces, name)| interfaces.bytes(name).ok()),
            interfaces,
            throttling: self.cgroup.as_ref().and_then(|cgroup| cgroup.throttling().ok()),
        })
    }

    /// Its memory now.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.memory_of(&container::read(Path::new("/proc"), self.pid, self.cgroup.as_ref()))
    }

    /// Without its controller (version 2, not delegated) a group tells no memory.
    fn memory_of(&self, processes: &BTreeMap<i32, ProcessReading>) -> Memory {
        let group = self.cgroup.as_ref().and_then(|cgroup| cgroup.memory().ok());
        let sum = |bytes: fn(&ProcessMemory) -> u64| {
            let sum = processes.values().map(|process| bytes(&process.memory)).sum();
            Some(sum).filter(|sum| *sum > 0)
        };
        Memory {
            resident_bytes: sum(|memory| memory.resident_bytes),
            working_set_bytes: group.map(|group| group.working_set_bytes),
            anonymous_bytes: group
                .map(|group| group.anonymous_bytes)
                .or_else(|| sum(|memory| memory.anonymous_bytes)),
        }
    }

    /// What it used between two readings.
    #[must_use]
    pub fn usage(
        &self,
        open: &ComponentReading,
        close: &ComponentReading,
        ticks_per_second: u64,
    ) -> ComponentUsage {
        let (cpu_user_s, cpu_system_s) = split(open.cpu, close.cpu);
        // Of one that has ended the group shows what the kernel has not taken back yet.
        let memory = if close.memory.resident_bytes.is_some() { close.memory } else { open.memory };
        ComponentUsage {
            pod: Some(self.pod.clone()),
            cpu_user_s,
            cpu_system_s,
            cpu_source: self.cpu_source().to_owned(),
            memory_resident_bytes: memory.resident_bytes.unwrap_or(0),
            memory_working_set_bytes: memory.working_set_bytes,
            memory_anonymous_bytes: memory.anonymous_bytes,
            processes: processes(&open.processes, &close.processes, ticks_per_second),
            network: open.interface.zip(close.interface).map(|(open, close)| NetworkUsage {
                received_bytes: close.received.saturating_sub(open.received),
                sent_bytes: close.sent.saturating_sub(open.sent),
            }),
            scheduling: scheduling(&open.switches(), &close.switches()),
            throttling: open.throttling.zip(close.throttling).map(|(open, close)| Throttling {
                periods: close.throttled_periods.saturating_sub(open.throttled_periods),
                time_s: seconds(close.time_ns.saturating_sub(open.time_ns)),
            }),
            ..ComponentUsage::of(&self.name, self.role, close.at.duration_since(open.at).as_secs_f64())
        }
    }
}

impl ComponentReading {
    /// Context switches of all threads of all processes; threads are numbered across processes.
    fn switches(&self) -> BTreeMap<i32, Switches> {
        self.processes.values().flat_map(|process| process.switches.clone()).collect()
    }
}

/// What each process used, where a component has several.
fn processes(
    open: &BTreeMap<i32, ProcessReading>,
    close: &BTreeMap<i32, ProcessReading>,
    ticks_per_second: u64,
) -> Vec<ProcessUsage> {
    if close.len() < 2 {
        return Vec::new();
    }
    let seconds = |ticks: u64| ticks as f64 / ticks_per_second.max(1) as f64;
    close
        .iter()
        .map(|(pid, close)| {
            let before =
                open.get(pid).map_or((0, 0), |open| (open.times.user_ticks, open.times.system_ticks));
            ProcessUsage {
                name: close.times.name.clone(),
                cpu_user_s: seconds(close.times.user_ticks.saturating_sub(before.0)),
                cpu_system_s: seconds(close.times.system_ticks.saturating_sub(before.1)),
                memory_resident_bytes: close.memory.resident_bytes,
                memory_anonymous_bytes: Some(close.memory.anonymous_bytes),
            }
        })
        .collect()
}

fn cgroup_cpu(cgroup: &Cgroup) -> io::Result<CpuTimes> {
    let usage = cgroup.cpu_usage()?;
    Ok(CpuTimes { total_ns: usage.total_ns, user_ns: usage.user_ns, system_ns: usage.system_ns })
}

/// CPU of a component without a control group, from its processes.
fn process_cpu(
    proc: &Path,
    pid: i32,
    processes: &BTreeMap<i32, ProcessReading>,
    ticks_per_second: u64,
) -> io::Result<CpuTimes> {
    // An error where it is gone.
    process::times(proc, pid)?;
    let ns = |ticks: u64| ticks.saturating_mul(1_000_000_000 / ticks_per_second.max(1));
    let sum = |ticks: fn(&ProcessReading) -> u64| ns(processes.values().map(ticks).sum());
    let (user_ns, system_ns) =
        (sum(|process| process.times.user_ticks), sum(|process| process.times.system_ticks));
    Ok(CpuTimes { total_ns: user_ns + system_ns, user_ns, system_ns })
}

/// User and system seconds between two readings: the exact total, divided as the (perhaps coarser) parts are.
pub(super) fn split(open: CpuTimes, close: CpuTimes) -> (f64, f64) {
    let total_s = seconds(close.total_ns.saturating_sub(open.total_ns));
    let user = close.user_ns.saturating_sub(open.user_ns) as f64;
    let system = close.system_ns.saturating_sub(open.system_ns) as f64;
    // Too short for a tick: nothing tells the modes apart.
    let user_share = if user + system > 0.0 { user / (user + system) } else { 1.0 };
    (total_s * user_share, total_s * (1.0 - user_share))
}

/// Context switches between two readings of all threads.
pub(super) fn scheduling(
    open: &BTreeMap<i32, Switches>,
    close: &BTreeMap<i32, Switches>,
) -> Option<SchedulingUsage> {
    process::switches_between(open, close).map(|switches| SchedulingUsage {
        voluntary_switches: switches.voluntary,
        involuntary_switches: switches.involuntary,
    })
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;

    #[test]
    fn the_exact_total_is_divided_as_the_ticks_are() {
        let open = CpuTimes { total_ns: 1_000_000_000, user_ns: 600_000_000, system_ns: 400_000_000 };
        let close = CpuTimes { total_ns: 2_005_000_000, user_ns: 1_350_000_000, system_ns: 650_000_000 };
        let (user_s, system_s) = split(open, close);
        assert!((user_s - 1.005 * 0.75).abs() < 1e-9);
        assert!((system_s - 1.005 * 0.25).abs() < 1e-9);
        let shorter_than_a_tick = CpuTimes { total_ns: 1_004_000_000, ..open };
        assert_eq!(split(open, shorter_than_a_tick), (0.004, 0.0));
    }

    /// Burns this much CPU, as the kernel's own exact clock of this process has it.
    fn burn(cpu: Duration) {
        let now = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
        let end = now() + cpu;
        while now() < end {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_known_burn_is_read_from_proc() {
        let watched = Watched {
            name: "burner".to_owned(),
            role: Role::App,
            pod: "pod".to_owned(),
            pid: std::process::id().cast_signed(),
            cgroup: None,
            interface: Some("lo".to_owned()),
        };
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        let open = watched.read(None, ticks_per_second).unwrap();
        burn(Duration::from_millis(400));
        let close = watched.read(Some(&open), ticks_per_second).unwrap();
        let usage = watched.usage(&open, &close, ticks_per_second);
        // Other tests of this process may run beside it, and ticks are 10 ms.
        let cpu_s = usage.cpu_user_s + usage.cpu_system_s;
        assert!(cpu_s > 0.36, "{usage:?}");
        assert_eq!(usage.cpu_source, "proc");
        assert!(usage.memory_resident_bytes > 100_000);
        assert!(usage.network.is_some() && usage.throttling.is_none());
    }

    #[test]
    fn a_component_that_is_gone_is_an_error() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let watched = Watched {
            name: "gone".to_owned(),
            role: Role::App,
            pod: "pod".to_owned(),
            pid: child.id().cast_signed(),
            cgroup: None,
            interface: None,
        };
        assert!(watched.read(None, 100).is_err());
    }
}
