//! The clock of a run.

use experiment::environment::Clock;
use std::time::{Duration, Instant};

/// The clock of this machine, from the moment when it was made.
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
