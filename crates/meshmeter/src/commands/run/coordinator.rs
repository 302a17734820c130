//! Order of a run: deployment after deployment, trial after trial, each written to disk as it ends. At the
//! end of each repeat, trials that the machine disturbed are rerun; [`statistics::retakes`] decides which.

use super::after_repeat::AfterRepeat;
use super::context::RunContext;
use super::failures::Failures;
use super::live::LiveMetrics;
use super::progress::RunProgress;
use super::resume;
use super::trial::{self, Place, TrialRun};
use crate::commands::report::folder_failure;
use crate::failure::Failure;
use experiment::environment::deploy::{Deployment, Environment};
use experiment::environment::error_chain;
use experiment::{Plan, PlannedTrial};
use report::folder::RunFolder;
use results::{DeploymentUse, Retake, TrialRecord};
use statistics::retakes::{DueRetake, Retakes};
use std::collections::VecDeque;

/// A run under way.
pub(super) struct Coordinator<'a> {
    plan: &'a Plan,
    environment: &'a mut dyn Environment,
    context: RunContext<'a>,
    log: RunLog<'a>,
    /// Number of deployments so far.
    deployments: usize,
    /// True once a deployment has come up.
    has_deployed: bool,
    /// Trials that the run already had when it was continued.
    recorded: Vec<TrialRecord>,
}

/// State of the trials so far, and where they are recorded.
struct RunLog<'a> {
    folder: &'a mut RunFolder,
    progress: &'a mut RunProgress,
    failures: Failures,
    retakes: Retakes,
    live: Option<&'a LiveMetrics>,
    /// May end the run after a repeat.
    after_repeat: Option<&'a mut dyn AfterRepeat>,
    /// Number of trials so far, reruns included.
    trials: usize,
}

/// A trial that is due to run.
struct DueTrial<'a> {
    planned: &'a PlannedTrial,
    retake: Option<Retake>,
}

impl<'a> Coordinator<'a> {
    /// A run of `plan` that has not started.
    pub(super) fn new(
        plan: &'a Plan,
        environment: &'a mut dyn Environment,
        folder: &'a mut RunFolder,
        progress: &'a mut RunProgress,
        context: RunContext<'a>,
    ) -> Self {
        let retakes = Retakes::new(plan.retakes, plan.max_reruns());
        let live = context.live;
        let failures = Failures::default();
        let log = RunLog { folder, progress, failures, retakes, live, after_repeat: None, trials: 0 };
        Self { plan, environment, context, log, deployments: 0, has_deployed: false, recorded: Vec::new() }
    }

    /// Continues a run that has these trials.
    pub(super) fn after(mut self, recorded: Vec<TrialRecord>) -> Self {
        let used = recorded.iter().filter_map(|trial| trial.deployment.as_ref());
        self.deployments = used.map(|deployment| deployment.number + 1).max().unwrap_or(0);
        self.log.trials = recorded.iter().map(|trial| trial.index + 1).max().unwrap_or(0);
        recorded.iter().for_each(|trial| self.log.retakes.note(trial));
        self.log.failures = Failures::after(&recorded);
        self.log.progress.resume_after(recorded.len());
        self.recorded = recorded;
        self
    }

    /// Lets `after_repeat` end the run after any repeat.
    pub(super) fn followed_by(mut self, after_repeat: &'a mut dyn AfterRepeat) -> Self {
        self.log.after_repeat = Some(after_repeat);
        self
    }

    /// Runs until the end, an interruption, or a permanent failure of the disk or the environment.
    pub(super) fn run(mut self) -> Result<(), Failure> {
        let plan = self.plan;
        let mut was_noisy = false;
        let due = |planned| Some(DueTrial { planned, retake: resume::due(planned, &self.recorded)? });
        let due: Vec<VecDeque<DueTrial<'_>>> =
            plan.repeats().map(|repeat| repeat.iter().filter_map(due).collect()).collect();
        self.log.planned(due.iter().map(VecDeque::len).sum());
        for (repeat, due) in plan.repeats().zip(due) {
            self.run_trials(due)?;
            self.rerun_disturbed(repeat)?;
            if self.log.retakes.too_noisy() && !was_noisy {
                was_noisy = true;
                self.log.progress.note(&format!(
                    "this machine is too noisy for this experiment: the limit of reruns ({}) is reached, and disturbed \
                     trials remain",
                    self.log.retakes.taken()
                ));
            }
            if !(self.context.stop)() && !self.log.goes_on_after(repeat)? {
                break;
            }
        }
        if (self.context.stop)() { Ok(()) } else { self.log.failures.end() }
    }

    /// Reruns the trials of a repeat that the machine disturbed, and again those that it disturbed once more.
    fn rerun_disturbed(&mut self, repeat: &[PlannedTrial]) -> Result<(), Failure> {
        let Some(number) = repeat.first().map(|planned| planned.repeat) else { return Ok(()) };
        loop {
            let due = self.log.retakes.due(number);
            if due.is_empty() || (self.context.stop)() {
                return Ok(());
            }
            self.log.progress.more_trials(due.len());
            self.log.planned(due.len());
            let trial = |due: DueRetake| {
                let planned = repeat.iter().find(|planned| planned.cell() == due.cell());
                let planned = planned.expect("a trial that has run is in the plan");
                DueTrial { planned, retake: Some(due.retake) }
            };
            let mut due: Vec<DueTrial<'_>> = due.into_iter().map(trial).collect();
            // Groups trials that share a deployment.
            due.sort_by_key(|trial| trial.planned.deployment);
            self.run_trials(due.into())?;
        }
    }

    /// Runs trials until the run is stopped.
    fn run_trials(&mut self, mut due: VecDeque<DueTrial<'_>>) -> Result<(), Failure> {
        while let Some(first) = due.pop_front() {
            if (self.context.stop)() {
                return Ok(());
            }
            self.run_deployment(first, &mut due)?;
        }
        Ok(())
    }

    /// Deploys what a trial needs. Runs it and the following trials that share its deployment, until one
    /// fails.
    fn run_deployment(
        &mut self,
        first: DueTrial<'_>,
        rest: &mut VecDeque<DueTrial<'_>>,
    ) -> Result<(), Failure> {
        let Self { environment, context, log, deployments, has_deployed, .. } = self;
        let mut used = DeploymentUse { number: *deployments, trial: 0 };
        *deployments += 1;
        let label = match shares_deployment(rest, &first) {
            true => RunFolder::deployment_label(used.number),
            false => log.next_label(),
        };
        log.trial_begins(&first);
        let mut started_at = jiff::Timestamp::now();
        let mut deployment = match environment.deploy(&first.planned.spec, &label) {
            Ok(deployment) => deployment,
            Err(error) => {
                let hopeless = (!*has_deployed && error.lasts()).then(|| Failure::from_error(&error));
                log.append(first, started_at, used, TrialRun::not_deployed(error, context))?;
                // The others would fail the same way.
                return hopeless.map_or(Ok(()), Err);
            }
        };
        *has_deployed = true;
        let mut trial = first;
        loop {
            let run = trial::run(&mut *deployment, trial.planned, &log.next_label(), context, log.progress);
            let is_usable = run.leaves_deployment_usable() && shares_deployment(rest, &trial);
            log.append(trial, started_at, used, run)?;
            match rest.pop_front_if(|_| is_usable && !(context.stop)()) {
                Some(next) => trial = next,
                None => break,
            }
            used.trial += 1;
            started_at = jiff::Timestamp::now();
            log.trial_begins(&trial);
        }
        finish(deployment, log.progress);
        Ok(())
    }
}

/// True if the next trial uses the same deployment as this one.
fn shares_deployment(rest: &VecDeque<DueTrial<'_>>, trial: &DueTrial<'_>) -> bool {
    rest.front().is_some_and(|next| next.planned.deployment == trial.planned.deployment)
}

fn finish(deployment: Box<dyn Deployment + '_>, progress: &RunProgress) {
    if let Err(error) = deployment.finish() {
        progress.note(&format!("a deployment was not removed completely: {}", error_chain(&error)));
    }
}

impl RunLog<'_> {
    /// Label of the next trial's logs.
    fn next_label(&self) -> String {
        RunFolder::trial_label(self.trials)
    }

    /// True if the run goes on after a repeat.
    fn goes_on_after(&mut self, repeat: &[PlannedTrial]) -> Result<bool, Failure> {
        let (Some(after_repeat), Some(planned)) = (&mut self.after_repeat, repeat.first()) else {
            return Ok(true);
        };
        after_repeat.goes_on(planned.repeat, self.progress)
    }

    /// Announces `trials` more trials.
    fn planned(&self, trials: usize) {
        if let Some(live) = self.live {
            live.planned(trials);
        }
    }

    /// Announces the start of a trial.
    fn trial_begins(&self, trial: &DueTrial<'_>) {
        self.progress.trial_begins(trial.planned, trial.retake.as_ref());
        if let Some(live) = self.live {
            live.trial_begins(trial.planned, self.trials);
        }
    }

    /// Writes a trial to disk.
    fn append(
        &mut self,
        trial: DueTrial<'_>,
        started_at: jiff::Timestamp,
        deployment: DeploymentUse,
        run: TrialRun,
    ) -> Result<(), Failure> {
        let DueTrial { planned, retake } = trial;
        let place = Place { index: self.trials, started_at: started_at.to_string(), deployment, retake };
        let (record, failure) = trial::record(planned, place, run);
        self.folder.append_trial(&record).map_err(folder_failure)?;
        self.trials += 1;
        self.progress.trial_ended(planned, &record);
        if let Some(live) = self.live {
            live.trial_ended(&record);
        }
        if let Some(after_repeat) = &mut self.after_repeat {
            after_repeat.trial_ended(&record);
        }
        self.retakes.note(&record);
        self.failures.note(&record, failure)
    }
}

#[cfg(test)]
mod tests;
