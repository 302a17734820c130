//! Time on the hot path: nanoseconds since the start of the run's schedule, from the monotonic clock.

use std::time::{Duration, Instant};

/// Nanoseconds since [`Clock`]'s origin.
pub(crate) type Nanos = u64;

/// Nanoseconds in a second.
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// A clock that all workers share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads 0 at `origin`, and before it.
    pub(crate) fn starting_at(origin: Instant) -> Self {
        Self { origin }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Nanos {
        nanos(self.origin.elapsed())
    }
}

/// A duration as nanoseconds; durations beyond 584 years are clipped.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
