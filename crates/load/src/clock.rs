//! Time on the hot path: monotonic nanoseconds since the start of the run's schedule.

use std::thread;
use std::time::{Duration, Instant};

/// Nanoseconds since [`Clock`]'s origin.
pub(crate) type Nanos = u64;

/// Nanoseconds per second.
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// How long before the origin spinning begins: about as late as a sleep ends.
const SPIN_BEFORE_ORIGIN: Duration = Duration::from_micros(100);

/// A clock shared by all workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// Creates a clock that reads 0 at `origin` and before it.
    pub(crate) fn starting_at(origin: Instant) -> Self {
        Self { origin }
    }

    /// Sleeps until the clock starts, and spins at the end. Before the origin every reading is 0, so a
    /// request due at 0 would be sent too early.
    pub(crate) fn wait_for_origin(&self) {
        thread::sleep(self.until_origin().saturating_sub(SPIN_BEFORE_ORIGIN));
        while !self.until_origin().is_zero() {
            std::hint::spin_loop();
        }
    }

    /// Time until the origin; zero from then on.
    pub(crate) fn until_origin(&self) -> Duration {
        self.origin.saturating_duration_since(Instant::now())
    }

    /// Current time.
    pub(crate) fn now(&self) -> Nanos {
        self.time_of(Instant::now())
    }

    /// Converts an instant; 0 before the origin.
    pub(crate) fn time_of(&self, instant: Instant) -> Nanos {
        nanos(instant.saturating_duration_since(self.origin))
    }
}

/// Converts a duration to nanoseconds; durations beyond 584 years are clipped.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
