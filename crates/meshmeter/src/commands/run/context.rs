//! Clock of a run, and whether it is to stop.

use super::verdict::Ending;
use experiment::environment::Clock;

/// Beside the environment of a run.
pub(super) struct RunContext<'a> {
    /// Whether the user has stopped the run.
    pub stop: &'a dyn Fn() -> bool,
    pub clock: &'a dyn Clock,
}

impl RunContext<'_> {
    /// How a trial ends if nothing else ends it.
    pub(super) fn ending_so_far(&self) -> Ending {
        if (self.stop)() { Ending::Interrupted } else { Ending::Finished }
    }
}
