//! Failed trials: whether to continue after one, and whether a mode could be measured at all.

use crate::failure::Failure;
use experiment::environment::EnvironmentError;
use results::{Mode, TrialOutcome, TrialRecord};

/// Consecutive trials without a measurement after which the environment is considered broken.
const MAX_CONSECUTIVE_FAILURES: usize = 3;

/// Failures of a run so far.
#[derive(Default)]
pub(super) struct Failures {
    consecutive: usize,
    /// Modes without a completed trial, each with its last failure.
    modes: Vec<(Mode, Failure)>,
    /// Modes with at least one completed trial.
    measured: Vec<Mode>,
}

impl Failures {
    /// Failures of a run that is continued after these trials: what kept some of them from being measured may be
    /// mended since.
    pub fn after(trials: &[TrialRecord]) -> Self {
        let measured = trials.iter().filter(|trial| trial.outcome != TrialOutcome::Failed);
        Self { measured: measured.map(|trial| trial.mode).collect(), ..Self::default() }
    }

    /// Records how a trial ended.
    ///
    /// # Errors
    /// Returns an error after too many consecutive failures.
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

    /// Returns an error if all trials of a mode have failed: a comparison without it answers another
    /// question.
    pub fn end(self) -> Result<(), Failure> {
        let all = self.modes.into_iter();
        Failure::all(
            all.map(|(mode, failure)| failure.about(&format!("every trial of mode {mode} failed"))).collect(),
        )
    }
}
