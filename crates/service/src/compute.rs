//! Busy computation for a given CPU time.

use rustix::time::{ClockId, clock_gettime};
use std::hint;
use std::time::Duration;

/// Rounds of spinning between two readings of the thread's clock, which is a system call: less than a
/// microsecond.
const SPINS_PER_POLL: u32 = 100;

/// Uses this much CPU time on the calling thread.
pub(crate) fn compute(duration: Duration) {
    if duration.is_zero() {
        return;
    }
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let end = used().saturating_add(duration);
    while used() < end {
        for _ in 0..SPINS_PER_POLL {
            hint::black_box(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_uses_cpu_time_of_thread() {
        let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let before = used();
        compute(Duration::from_millis(2));
        assert!(used() - before >= Duration::from_millis(2));
    }
}
