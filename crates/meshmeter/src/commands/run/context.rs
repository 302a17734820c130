//! Clock of a run, whether it is to stop, and who is told of it meanwhile.

use super::live::LiveMetrics;
use super::verdict::Ending;
use experiment::environment::Clock;

/// Beside the environment of a run.
pub(super) struct RunContext<'a> {
    /// Whether the user has stopped the run.
    pub stop: &'a dyn Fn() -> bool,
    pub clock: &'a dyn Clock,
    /// Where its figures are sent meanwhile.
    pub live: Option<&'a LiveMetrics>,
}

impl RunContext<'_> {
    /// How a trial ends if nothing else ends it.
    pub(super) fn ending_so_far(&self) -> Ending {
        if (self.stop)() { Ending::Interrupted } else { Ending::Finished }
    }
}
