//! The clock of a run.

use experiment::environment::Clock;
use std::time::{Duration, Instant};

/// Monotonic clock that starts when it is created.
pub(super) struct SystemClock(Instant);

impl SystemClock {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
