//! Trials that failed: whether to go on after one, and whether a mode could be measured at all.

use crate::failure::Failure;
use experiment::Mode;
use experiment::environment::EnvironmentError;
use experiment::schema::{TrialOutcome, TrialRecord};

/// Consecutive trials that could not be measured, after which the environment is taken to be broken.
const MAX_CONSECUTIVE_FAILURES: usize = 3;

/// The failures of a run until now.
#[derive(Default)]
pub(super) struct Failures {
    consecutive: usize,
    /// The modes no trial of which has ended well, each with its last failure.
    modes: Vec<(Mode, Failure)>,
    /// Those of which one has.
    measured: Vec<Mode>,
}

impl Failures {
    /// Notes how a trial ended.
    ///
    /// An error where it is one failure too many.
    pub fn note(&mut self, trial: &TrialRecord, error: Option<EnvironmentError>) -> Result<(), Failure> {
        self.modes.retain(|(mode, _)| *mode != trial.mode);
        if trial.outcome != TrialOutcome::Failed {
            self.consecutive = 0;
            self.measured.push(trial.mode);
            return Ok(());
        }
        self.consecutive += 1;
        let reason = || trial.verdict.reasons.first().cloned().unwrap_or_default();
        let failure = error.map_or_else(|| Failure::broken(reason()), Failure::from);
        if self.consecutive == MAX_CONSECUTIVE_FAILURES {
            return Err(failure.about(&format!("{MAX_CONSECUTIVE_FAILURES} trials in a row failed")));
        }
        if !self.measured.contains(&trial.mode) {
            self.modes.push((trial.mode, failure));
        }
        Ok(())
    }

    /// An error where all trials of a mode have failed: a comparison without it answers another question.
    pub fn end(self) -> Result<(), Failure> {
        let all = self.modes.into_iter();
        Failure::all(
            all.map(|(mode, failure)| failure.about(&format!("every trial of mode {mode} failed"))).collect(),
        )
    }
}
