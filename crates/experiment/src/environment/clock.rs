//! Clock of a run, replaceable so that tests need not wait.

use std::time::Duration;

/// Monotonic clock.
pub trait Clock {
    /// Time since a fixed moment.
    fn now(&self) -> Duration;

    /// Sleeps for this duration.
    fn sleep(&self, duration: Duration);
}
