//! Sentences on trials that the machine disturbed: which were taken again, and where it may not have been the machine.

use super::run::Run;
use super::{validity, words};
use crate::retakes::is_late;
use experiment::Mode;
use experiment::schema::TrialRecord;
use statrs::distribution::{Binomial, DiscreteCDF as _};

/// So seldom would chance have the generator late so often with one of the modes, whichever it is.
const SELDOM: f64 = 0.01;

/// Trials that were taken again, and whether more would have to be.
pub(super) fn taken_again(run: &Run<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    let Some(retakes) = run.summary.retakes else { return sentences };
    let again: Vec<&TrialRecord> = run.trials.all().iter().filter(|trial| trial.take() > 1).collect();
    if !again.is_empty() {
        let (were, disturbed) = match again.len() {
            1 => ("trial was", "it"),
            _ => ("trials were", "them"),
        };
        let valid: usize = run.summary.cells.iter().map(|cell| cell.valid).sum();
        let are = if retakes.valid == 1 { "is" } else { "are" };
        sentences.push(format!(
            "{} {were} taken again, since the machine had disturbed {disturbed} ({}): {} of these takes {are} valid; {valid} of {} \
             trials are in all.",
            again.len(),
            words::list(&validity::places(&again)),
            retakes.valid,
            run.summary.trials_planned,
        ));
    }
    if retakes.too_noisy {
        let were = if retakes.taken == 1 { "trial was" } else { "trials were" };
        sentences.push(format!(
            "This machine is too noisy for this experiment: after {} {were} taken again no more were, though more would have \
             to be.",
            retakes.taken
        ));
    }
    sentences
}

/// A mode with which the generator was late more often than with the others, and than chance would have it. All modes have
/// as many first takes, so that each would have its share.
pub(super) fn late_with_one_mode(run: &Run<'_>) -> Option<String> {
    let modes = &run.experiment.modes;
    let first =
        |mode: Mode| run.trials.all().iter().filter(move |trial| trial.mode == mode && trial.take() == 1);
    let late = |mode: Mode| first(mode).filter(|trial| is_late(trial)).count();
    let all: usize = modes.iter().map(|mode| late(*mode)).sum();
    let mode = modes.iter().copied().max_by_key(|mode| late(*mode))?;
    let of_it = late(mode);
    if modes.len() < 2 || of_it == 0 {
        return None;
    }
    let share = 1.0 / modes.len() as f64;
    let chance = Binomial::new(share, all as u64).ok()?.sf(of_it as u64 - 1) * modes.len() as f64;
    (chance < SELDOM).then(|| {
        format!(
            "The generator was late in {of_it} of {} trials of {} and in {} of all others, more than by chance: the mode may be \
             what holds it up, and its figures are of the trials in which it did not.",
            first(mode).count(),
            words::subject(mode),
            all - of_it
        )
    })
}
