//! Whether there is a CPU to spare for spinning: what `--pacing auto` asks.
//!
//! A spinning thread fills a CPU. That is free where nobody else wants the CPU, and falsifies the measurement where the system
//! under test does. So the run looks at the machine a few times a second, and lets its threads spin without bound only while
//!
//! - they have CPUs of their own (an affinity of as many CPUs as threads, on a machine with more), nobody else uses these, and
//!   the threads never queue for them; or else
//! - besides a CPU for each thread, one more of those that may be used is idle all the time.
//!
//! A CPU quota under the number of these CPUs forbids it: spinning would use up the quota.

use crate::usage::cpus::usable_cpus;
use crate::usage::{ProcessCpu, run_queue_wait};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks: long enough for idle time to be exact, short enough to notice a change.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// CPUs of their own: the share of them that others may use, and for which the threads may queue.
const BEARABLE: f64 = 0.05;
const BEARABLE_QUEUE: f64 = 0.01;

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

/// What may be used, and by how many threads.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Room {
    /// Threads that would spin.
    threads: usize,
    /// CPUs that this process may use, and those of the machine.
    allowed: usize,
    online: usize,
    /// CPUs that the quota leaves of the allowed.
    quota: f64,
}

/// What was seen between two looks, each in CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    /// Idle among the allowed.
    idle: f64,
    /// Used by this process.
    own: f64,
    /// Threads of this process that queued for a CPU.
    queued: f64,
}

impl Room {
    /// The rule. Pure.
    fn is_spare(&self, seen: &Seen) -> bool {
        let threads = self.threads as f64;
        let free_of_others = seen.idle + seen.own;
        if self.quota < self.allowed as f64 || self.allowed < self.threads {
            return false;
        }
        if self.allowed == self.threads && self.allowed < self.online {
            return free_of_others >= (1.0 - BEARABLE) * threads && seen.queued <= BEARABLE_QUEUE * threads;
        }
        free_of_others >= threads + 1.0
    }
}

/// Looks at the machine and tells the threads.
pub(crate) struct SpareWatch<'a> {
    told: &'a SpareCpu,
    room: Room,
    cpus: CpuSet,
    last: Option<Reading>,
}

/// Sums since whenever.
struct Reading {
    at: Instant,
    idle: Duration,
    own: Duration,
    queued: Duration,
}

impl<'a> SpareWatch<'a> {
    /// For so many threads. Absent where the kernel does not tell which CPUs may be used: nothing is to spare then.
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

    /// Looks, where it is time to.
    pub(crate) fn look(&mut self) {
        if self.last.as_ref().is_some_and(|last| last.at.elapsed() < LOOK_INTERVAL) {
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

/// Idle time of certain CPUs, waiting for devices included, in ticks: fields 4 and 5 of their lines in /proc/stat (proc(5)).
fn idle_ticks(stat: &str, wanted: impl Fn(usize) -> bool) -> u64 {
    let fields = |times: &str| -> u64 {
        times.split_ascii_whitespace().skip(3).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
    };
    cpu_lines(stat).filter(|(cpu, _)| wanted(*cpu)).map(|(_, times)| fields(times)).sum()
}

/// The CPUs that are on, each with its times.
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
    fn on_cpus_of_its_own_it_is_the_absence_of_others_that_counts() {
        let room = Room { threads: 1, allowed: 1, online: 2, quota: 1.0 };
        assert!(room.is_spare(&seen(0.5, 0.5, 0.0)));
        assert!(room.is_spare(&seen(0.0, 1.0, 0.0)));
        // Somebody else has a tenth of it, or waits behind us as we wait behind them.
        assert!(!room.is_spare(&seen(0.4, 0.5, 0.0)));
        assert!(!room.is_spare(&seen(0.0, 1.0, 0.02)));
    }

    #[test]
    fn on_shared_cpus_one_must_be_idle_besides() {
        let room = Room { threads: 2, allowed: 4, online: 4, quota: 4.0 };
        assert!(room.is_spare(&seen(2.5, 0.5, 0.0)));
        assert!(room.is_spare(&seen(1.0, 2.0, 0.0)));
        assert!(!room.is_spare(&seen(0.9, 2.0, 0.0)));
        assert!(!room.is_spare(&seen(2.4, 0.5, 0.0)));
        // Two CPUs, of which the system under test uses any at all.
        let small = Room { threads: 1, allowed: 2, online: 2, quota: 2.0 };
        assert!(!small.is_spare(&seen(1.5, 0.4, 0.0)));
        // The only CPU there is has others to serve, even where they happen to be quiet.
        let one = Room { threads: 1, allowed: 1, online: 1, quota: 1.0 };
        assert!(!one.is_spare(&seen(0.9, 0.1, 0.0)));
    }

    #[test]
    fn a_quota_is_not_spent_on_spinning() {
        let room = Room { threads: 1, allowed: 8, online: 8, quota: 7.5 };
        assert!(!room.is_spare(&seen(7.9, 0.1, 0.0)));
    }

    #[test]
    fn idle_time_is_that_of_the_cpus_asked_for() {
        let stat = "cpu  10 0 10 900 90 0 0 0 0 0\ncpu0 5 0 5 400 40 0 0 0 0 0\ncpu1 5 0 5 500 50 0 0 0 0 0\nintr 5 1 2\n";
        assert_eq!(cpu_lines(stat).count(), 2);
        assert_eq!(idle_ticks(stat, |_| true), 990);
        assert_eq!(idle_ticks(stat, |cpu| cpu == 1), 550);
    }
}
