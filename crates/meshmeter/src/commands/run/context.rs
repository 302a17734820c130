//! Context of a run: its clock, whether it should stop, and where figures are sent in the meantime.

use super::live::LiveMetrics;
use super::verdict::Ending;
use experiment::environment::Clock;

/// What a run uses in addition to its environment.
pub(super) struct RunContext<'a> {
    /// Returns true if the user has stopped the run.
    pub stop: &'a dyn Fn() -> bool,
    pub clock: &'a dyn Clock,
    /// Receives figures while the run is under way.
    pub live: Option<&'a LiveMetrics>,
    /// True if stacks are sampled within windows.
    pub profile: bool,
}

impl RunContext<'_> {
    /// How a trial ends if no other cause ends it.
    pub(super) fn ending_so_far(&self) -> Ending {
        if (self.stop)() { Ending::Interrupted } else { Ending::Finished }
    }
}
