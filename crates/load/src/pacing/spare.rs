//! Detects whether there is a CPU to spare for spinning, for `--pacing auto`.
//!
//! A spinning thread occupies a CPU. That is free if nobody else needs the CPU, and distorts the measurement
//! if the system under test does. So the run checks the machine a few times per second, and lets its threads
//! spin without bound only while
//!
//! - they have dedicated CPUs (an affinity of as many CPUs as threads, on a machine with more), nobody else
//!   uses these, and the threads never queue for them; or
//! - one more of the allowed CPUs, in addition to one per thread, is idle all the time.
//!
//! A CPU quota below the number of allowed CPUs rules it out: spinning would use up the quota.

use crate::usage::cpus::usable_cpus;
use crate::usage::{ProcessCpu, run_queue_wait};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Poll interval: long enough for idle time to be exact, short enough to notice a change.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Dedicated CPUs: the maximum fraction of them that others may use, and for which the threads may queue.
const MAX_SHARED_FRACTION: f64 = 0.05;
const MAX_QUEUED_FRACTION: f64 = 0.01;

/// Tells the threads whether they may spin without bound.
#[derive(Debug, Default)]
pub(crate) struct SpareCpu(AtomicBool);

impl SpareCpu {
    pub(super) fn tell(&self, spare: bool) {
        self.0.store(spare, Ordering::Relaxed);
    }

    pub(super) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The CPUs that may be used, and the number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Room {
    /// Threads that would spin.
    threads: usize,
    /// CPUs allowed for this process, and CPUs online.
    allowed: usize,
    online: usize,
    /// CPUs that the quota leaves of the allowed ones.
    quota: f64,
}

/// Usage between two readings, each in CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    /// Idle time of the allowed CPUs.
    idle: f64,
    /// Used by this process.
    own: f64,
    /// Threads of this process waiting in a run queue.
    queued: f64,
}

impl Room {
    /// True if there is a CPU to spare. Pure.
    fn is_spare(&self, seen: &Seen) -> bool {
        let threads = self.threads as f64;
        let free_of_others = seen.idle + seen.own;
        if self.quota < self.allowed as f64 || self.allowed < self.threads {
            return false;
        }
        if self.allowed == self.threads && self.allowed < self.online {
            return free_of_others >= (1.0 - MAX_SHARED_FRACTION) * threads
                && seen.queued <= MAX_QUEUED_FRACTION * threads;
        }
        free_of_others >= threads + 1.0
    }
}

/// Monitors the machine and informs the threads.
pub(crate) struct SpareWatch<'a> {
    told: &'a SpareCpu,
    room: Room,
    cpus: CpuSet,
    last: Option<Reading>,
}

/// Cumulative counters.
struct Reading {
    at: Instant,
    idle: Duration,
    own: Duration,
    queued: Duration,
}

impl<'a> SpareWatch<'a> {
    /// Creates a watch for this many threads. `None` if the kernel does not report which CPUs are allowed:
    /// then none is spare.
    pub(crate) fn new(told: &'a SpareCpu, threads: usize) -> Option<Self> {
        let cpus = sched_getaffinity(None).ok()?;
        let room = Room {
            threads,
            allowed: cpus.count() as usize,
            online: cpu_lines(&fs::read_to_string("/proc/stat").ok()?).count(),
            quota: usable_cpus()?,
        };
        Some(Self { told, room, cpus, last: None })
    }

    /// Takes a reading if the poll interval has passed.
    pub(crate) fn look(&mut self) {
        if self.last.as_ref().is_some_and(|last| last.at.elapsed() < POLL_INTERVAL) {
            return;
        }
        let reading = self.read();
        let seen = self.last.as_ref().zip(reading.as_ref()).map(|(last, now)| now.since(last));
        let spare = seen.is_some_and(|seen| self.room.is_spare(&seen));
        self.told.tell(spare);
        self.last = reading;
    }

    fn read(&self) -> Option<Reading> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let tick_s = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let idle_s = idle_ticks(&stat, |cpu| self.cpus.is_set(cpu)) as f64 * tick_s;
        Some(Reading {
            at: Instant::now(),
            idle: Duration::from_secs_f64(idle_s),
            own: ProcessCpu::now().total(),
            queued: run_queue_wait()?,
        })
    }
}

impl Reading {
    fn since(&self, earlier: &Self) -> Seen {
        let passed_s = (self.at - earlier.at).as_secs_f64();
        let cpus = |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64() / passed_s;
        Seen {
            idle: cpus(self.idle, earlier.idle),
            own: cpus(self.own, earlier.own),
            queued: cpus(self.queued, earlier.queued),
        }
    }
}

/// Idle time of the selected CPUs including I/O wait, in ticks: fields 4 and 5 of their lines in /proc/stat
/// (proc(5)).
fn idle_ticks(stat: &str, wanted: impl Fn(usize) -> bool) -> u64 {
    let fields = |times: &str| -> u64 {
        times.split_ascii_whitespace().skip(3).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
    };
    cpu_lines(stat).filter(|(cpu, _)| wanted(*cpu)).map(|(_, times)| fields(times)).sum()
}

/// The online CPUs, each with its times.
fn cpu_lines(stat: &str) -> impl Iterator<Item = (usize, &str)> {
    stat.lines().take_while(|line| line.starts_with("cpu")).filter_map(|line| {
        let (cpu, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        Some((cpu.parse().ok()?, times))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(idle: f64, own: f64, queued: f64) -> Seen {
        Seen { idle, own, queued }
    }

    #[test]
    fn dedicated_cpus_are_spare_if_others_are_absent() {
        let room = Room { threads: 1, allowed: 1, online: 2, quota: 1.0 };
        assert!(room.is_spare(&seen(0.5, 0.5, 0.0)));
        assert!(room.is_spare(&seen(0.0, 1.0, 0.0)));
        // Another process uses a tenth of it, or our threads queue.
        assert!(!room.is_spare(&seen(0.4, 0.5, 0.0)));
        assert!(!room.is_spare(&seen(0.0, 1.0, 0.02)));
    }

    #[test]
    fn shared_cpus_are_spare_if_one_more_is_idle() {
        let room = Room { threads: 2, allowed: 4, online: 4, quota: 4.0 };
        assert!(room.is_spare(&seen(2.5, 0.5, 0.0)));
        assert!(room.is_spare(&seen(1.0, 2.0, 0.0)));
        assert!(!room.is_spare(&seen(0.9, 2.0, 0.0)));
        assert!(!room.is_spare(&seen(2.4, 0.5, 0.0)));
        // Two CPUs, one of which the system under test uses at all.
        let small = Room { threads: 1, allowed: 2, online: 2, quota: 2.0 };
        assert!(!small.is_spare(&seen(1.5, 0.4, 0.0)));
        // The only CPU has other work to do, even if that happens to be idle.
        let one = Room { threads: 1, allowed: 1, online: 1, quota: 1.0 };
        assert!(!one.is_spare(&seen(0.9, 0.1, 0.0)));
    }

    #[test]
    fn cpu_quota_rules_out_spare_cpu() {
        let room = Room { threads: 1, allowed: 8, online: 8, quota: 7.5 };
        assert!(!room.is_spare(&seen(7.9, 0.1, 0.0)));
    }

    #[test]
    fn idle_time_covers_only_selected_cpus() {
        let stat = "cpu  10 0 10 900 90 0 0 0 0 0\ncpu0 5 0 5 400 40 0 0 0 0 0\ncpu1 5 0 5 500 50 0 0 0 0 0\nintr 5 1 2\n";
        assert_eq!(cpu_lines(stat).count(), 2);
        assert_eq!(idle_ticks(stat, |_| true), 990);
        assert_eq!(idle_ticks(stat, |cpu| cpu == 1), 550);
    }
}
