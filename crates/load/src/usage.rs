//! Resource usage of the generator itself, and the CPUs that it may use.

pub(crate) mod cpus;

use procfs_core::FromRead as _;
use procfs_core::process::Status;
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::mem;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Total time for which threads of this process were runnable and waited for a CPU; `None` if the kernel does
/// not report it. Source: the second field of /proc/PID/task/TID/schedstat (proc(5),
/// Documentation/scheduler/sched-stats.rst).
pub(crate) fn run_queue_wait() -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for task in fs::read_dir("/proc/self/task").ok()? {
        // A thread may have ended in the meantime.
        let Ok(text) = fs::read_to_string(task.ok()?.path().join("schedstat")) else { continue };
        sum += queued(&text)?;
    }
    Some(sum)
}

/// The time in run queues of a schedstat file.
fn queued(schedstat: &str) -> Option<Duration> {
    Some(Duration::from_nanos(schedstat.split_ascii_whitespace().nth(1)?.parse().ok()?))
}

/// Time for which one thread was runnable and waited for a CPU.
#[derive(Debug)]
pub(crate) struct QueueWait {
    schedstat: File,
    seen: Duration,
}

impl QueueWait {
    /// That of the calling thread; `None` if the kernel does not report it: the number of its turns, the last figure, is then 0.
    pub(crate) fn of_thread() -> Option<Self> {
        let mut wait =
            Self { schedstat: File::open("/proc/thread-self/schedstat").ok()?, seen: Duration::ZERO };
        let is_reported = !wait.read()?.trim_end().ends_with(" 0");
        wait.since_last()?;
        is_reported.then_some(wait)
    }

    /// The time since the last call.
    pub(crate) fn since_last(&mut self) -> Option<Duration> {
        let total = queued(&self.read()?)?;
        Some(total.saturating_sub(mem::replace(&mut self.seen, total)))
    }

    fn read(&self) -> Option<String> {
        let mut text = [0; 96];
        let length = self.schedstat.read_at(&mut text, 0).ok()?;
        Some(String::from_utf8_lossy(&text[..length]).into_owned())
    }
}

/// Context switches of a thread, voluntary and involuntary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Switches {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
}

impl Switches {
    /// Those of the calling thread so far; 0 if the kernel does not report them.
    pub(crate) fn of_thread() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let count = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Self {
            voluntary: count("voluntary_ctxt_switches:"),
            involuntary: count("nonvoluntary_ctxt_switches:"),
        }
    }

    /// Difference to an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

/// CPU time of the whole process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessCpu {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl ProcessCpu {
    /// CPU time so far. The kernel reports the exact sum (CLOCK_PROCESS_CPUTIME_ID), and the parts only in
    /// ticks of 10 ms (/proc/self/stat): the sum is split in their proportion.
    pub(crate) fn now() -> Self {
        let total = clock_gettime(ClockId::ProcessCPUTime);
        let total =
            Duration::new(total.tv_sec.try_into().unwrap_or(0), total.tv_nsec.try_into().unwrap_or(0));
        let (user_ticks, system_ticks) = ticks().unwrap_or((1, 1));
        let system_share = system_ticks as f64 / (user_ticks + system_ticks).max(1) as f64;
        let system = total.mul_f64(system_share);
        Self { user: total.saturating_sub(system), system }
    }

    /// Difference to an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let total = (self.user + self.system).saturating_sub(earlier.user + earlier.system);
        let system = self.system.saturating_sub(earlier.system).min(total);
        Self { user: total - system, system }
    }

    pub(crate) fn total(&self) -> Duration {
        self.user + self.system
    }
}

/// User and system ticks of this process: fields 14 and 15 of /proc/self/stat (proc(5)).
fn ticks() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The command name, in parentheses, may contain spaces: count the fields after it.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Peak resident memory of this process in bytes; 0 if the kernel does not report it.
pub(crate) fn memory_peak_bytes() -> u64 {
    let status = Status::from_file("/proc/self/status").ok();
    status.and_then(|status| status.vmhwm).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queueing_of_a_thread_is_part_of_that_of_the_process() {
        let mut of_thread = QueueWait::of_thread().expect("the kernel reports it");
        let before = of_thread.seen;
        let after = before + of_thread.since_last().expect("it still does");
        assert_eq!(of_thread.seen, after);
        assert!(after <= run_queue_wait().expect("the kernel reports it"));
    }
}
