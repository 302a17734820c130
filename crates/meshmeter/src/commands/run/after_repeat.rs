//! Observers of a run that look at it after every repeat and may end it early.

use super::progress::RunProgress;
use crate::failure::Failure;
use results::TrialRecord;

/// Decides after each repeat whether a run goes on.
pub(super) trait AfterRepeat {
    /// Receives every trial, reruns included.
    fn trial_ended(&mut self, trial: &TrialRecord);

    /// True if the run goes on after a whole repeat (from 0), its reruns included.
    ///
    /// # Errors
    /// Returns an error if the run cannot go on.
    fn goes_on(&mut self, repeat: usize, progress: &RunProgress) -> Result<bool, Failure>;
}
