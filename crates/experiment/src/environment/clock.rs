//! Time as a run sees it, so that tests need not wait.

use std::time::Duration;

/// A clock that never goes back.
pub trait Clock {
    /// Time since a fixed moment.
    fn now(&self) -> Duration;

    /// Waits.
    fn sleep(&self, duration: Duration);
}
