//! Reruns of trials that the machine disturbed, and cases in which it may not have been the machine.

use super::run::Run;
use super::validity::counted_by_cell;
use crate::retakes::is_late;
use results::finding::{LateGenerator, Trials};
use results::{Finding, Mode, TrialRecord};
use statrs::distribution::{Binomial, DiscreteCDF as _};

/// The generator counts as late with one mode if chance would make it late that often with at most this
/// probability.
const SIGNIFICANCE_LEVEL: f64 = 0.01;

/// How many trials were rerun, and whether disturbed trials remain.
pub(super) fn reruns(run: &Run<'_>) -> Vec<Finding> {
    let Some(retakes) = run.summary.retakes else { return Vec::new() };
    let again = run.trials.all().iter().filter(|trial| trial.take() > 1);
    let reruns = counted_by_cell(run, again).map(Finding::Reruns);
    let limit = Finding::NoisyMachine(Trials { n: retakes.taken, of: retakes.most });
    reruns.chain(Some(limit).filter(|_| retakes.too_noisy)).collect()
}

/// A mode with which the generator was late more often than with the others, and more often than by chance.
/// All modes have the same number of first takes, so chance would give each an equal share.
pub(super) fn late_with_one_mode(run: &Run<'_>) -> Option<Finding> {
    let modes = &run.experiment.modes;
    let first =
        |mode: Mode| run.trials.all().iter().filter(move |trial| trial.mode == mode && trial.take() == 1);
    let is_late = |trial: &&TrialRecord| is_late(trial);
    let late = |mode: Mode| first(mode).filter(is_late).count();
    let all: usize = modes.iter().map(|mode| late(*mode)).sum();
    let mode = modes.iter().copied().max_by_key(|mode| late(*mode))?;
    let of_it = late(mode);
    if modes.len() < 2 || of_it == 0 {
        return None;
    }
    let share = 1.0 / modes.len() as f64;
    let p_value = Binomial::new(share, all as u64).ok()?.sf(of_it as u64 - 1) * modes.len() as f64;
    let trials = Trials { n: of_it, of: first(mode).count() };
    let late = LateGenerator { mode, of_all_modes: all, p_value, trials };
    (p_value < SIGNIFICANCE_LEVEL).then_some(Finding::LateGenerator(late))
}
