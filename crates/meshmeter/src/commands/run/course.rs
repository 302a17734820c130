//! The course of a run: trial after trial, each on the disk as it ends, and at the end of each repeat those again that the
//! machine disturbed. Which these are is decided in [`statistics::retakes`].

use super::super::report::folder_failure;
use super::failures::Failures;
use super::progress::RunProgress;
use super::trial::{self, Take};
use crate::failure::Failure;
use experiment::environment::Environment;
use experiment::schema::Retake;
use experiment::{Plan, PlannedTrial};
use report::folder::RunFolder;
use statistics::retakes::Retakes;

/// A run under way.
pub(super) struct Course<'a> {
    plan: &'a Plan,
    environment: &'a mut dyn Environment,
    folder: &'a mut RunFolder,
    progress: &'a mut RunProgress,
    stop: &'a dyn Fn() -> bool,
    failures: Failures,
    retakes: Retakes,
    /// Trials so far, those that were taken again included.
    trials: usize,
}

impl<'a> Course<'a> {
    /// A run of this plan that has not begun.
    pub(super) fn new(
        plan: &'a Plan,
        environment: &'a mut dyn Environment,
        folder: &'a mut RunFolder,
        progress: &'a mut RunProgress,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        let retakes = Retakes::new(plan.retakes, plan.most_retakes());
        Self { plan, environment, folder, progress, stop, failures: Failures::default(), retakes, trials: 0 }
    }

    /// Runs until the end, an interruption, or a disk or an environment that fails for good.
    pub(super) fn run(mut self) -> Result<(), Failure> {
        let plan = self.plan;
        let mut was_noisy = false;
        for repeat in plan.repeats() {
            for planned in repeat {
                self.take(planned, None)?;
            }
            self.take_again(repeat)?;
            if self.retakes.too_noisy() && !was_noisy {
                was_noisy = true;
                self.progress.note(&format!(
                    "this machine is too noisy for this experiment: {} trials were taken again, and no more will be",
                    self.retakes.taken()
                ));
            }
        }
        if (self.stop)() { Ok(()) } else { self.failures.end() }
    }

    /// Takes those of a repeat again that the machine disturbed, and those of them that it disturbed once more.
    fn take_again(&mut self, repeat: &[PlannedTrial]) -> Result<(), Failure> {
        let Some(number) = repeat.first().map(|planned| planned.repeat) else { return Ok(()) };
        loop {
            let due = self.retakes.due(number);
            if due.is_empty() || (self.stop)() {
                return Ok(());
            }
            self.progress.more_trials(due.len());
            for due in due {
                let planned = repeat.iter().find(|planned| planned.cell() == due.cell());
                self.take(planned.expect("what was taken is in the plan"), Some(due.retake))?;
            }
        }
    }

    /// Runs a trial, unless the run is to end.
    fn take(&mut self, planned: &PlannedTrial, retake: Option<Retake>) -> Result<(), Failure> {
        if (self.stop)() {
            return Ok(());
        }
        let take = Take { index: self.trials, retake };
        let log_dir = self.folder.trial_logs(take.index).map_err(folder_failure)?;
        self.progress.trial_begins(planned, take.retake.as_ref());
        let (record, failure) =
            trial::run(self.environment, planned, take, &log_dir, self.stop, self.progress);
        self.folder.append_trial(&record).map_err(folder_failure)?;
        self.trials += 1;
        self.progress.trial_ended(planned, &record);
        self.retakes.note(&record);
        self.failures.note(&record, failure)
    }
}

#[cfg(test)]
mod tests;
