//! Trials that were excluded or rerun, and modes that could not run.

use super::Context;
use results::finding::{Empty, ExcludedTrials, LateGenerator, OfCell, Trials, UnavailableModeReason};
use results::{OwnedCellKey, UnavailableMode};
use statistics::words;
use std::collections::BTreeMap;

/// Beyond this many cells, only modes are listed: the report lists every trial.
const MAX_PLACES: usize = 6;

/// Reason why a mode could not run, and what to do about it.
pub(super) fn lack<'a>(
    run: &Context<'a>,
    mode: &UnavailableModeReason,
) -> Option<(&'a String, &'a Option<String>)> {
    let is_it = |unavailable: &&UnavailableMode| {
        (unavailable.mode, &unavailable.factors) == (mode.mode, &mode.factors)
    };
    let unavailable = run.summary.host.refused_modes.iter().find(is_it)?;
    Some((&unavailable.reason, &unavailable.hint))
}

/// Modes that could not run for the same reason.
pub(super) fn unavailable_modes(run: &Context<'_>, group: &[&UnavailableModeReason]) -> String {
    let name = |mode: &&UnavailableModeReason| {
        let components = mode.factors.iter().map(|(key, value)| format!("{key} {value}"));
        let components: Vec<String> = components.collect();
        let with = if components.is_empty() { "" } else { " with " };
        format!("{}{with}{}", mode.mode, components.join(", "))
    };
    let hint = lack(run, group[0]).and_then(|(_, hint)| hint.as_ref());
    format!(
        "Not measured, and nothing stands in for it: {}: {}{}.",
        words::list(&group.iter().map(name).collect::<Vec<_>>()),
        group[0].reason,
        hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
    )
}

/// A run with fewer trials than planned.
pub(super) fn cut_short(Trials { n, of }: Trials) -> String {
    format!("The run was cut short: {n} of {of} trials were recorded.")
}

/// Trials excluded from all estimates, by reason.
pub(super) fn excluded(run: &Context<'_>, group: &[&OfCell<ExcludedTrials>]) -> String {
    let kinds: Vec<String> = group
        .chunk_by(|one, next| one.content.reason == next.content.reason)
        .map(|of_reason| format!("{} ({})", of_reason[0].content.reason, words::list(&places(of_reason))))
        .collect();
    let excluded = sum(group);
    let verb = if excluded == 1 { "is" } else { "are" };
    format!(
        "{excluded} of {} trials {verb} excluded from the estimates: {}.",
        run.summary.trials_recorded,
        kinds.join("; ")
    )
}

fn sum<T>(group: &[&OfCell<T>]) -> usize {
    group.iter().map(|one| one.trials.n).sum()
}

/// Number of trials per cell; per mode if the loads would make a long list.
fn places<T>(group: &[&OfCell<T>]) -> Vec<String> {
    let counted = |name: &dyn Fn(&OwnedCellKey) -> String| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for one in group {
            *counts.entry(name(&one.place)).or_default() += one.trials.n;
        }
        counts.into_iter().map(|(place, count)| format!("{count} of {place}")).collect::<Vec<_>>()
    };
    let mode = |place: &OwnedCellKey| words::mode(place.mode).to_owned();
    let exact = counted(&|place| format!("{}, {}", mode(place), words::described(place.conditions())));
    if exact.len() <= MAX_PLACES { exact } else { counted(&mode) }
}

/// Trials that were rerun.
pub(super) fn reruns(run: &Context<'_>, group: &[&OfCell<Empty>]) -> String {
    let reruns = sum(group);
    let (were, disturbed) = match reruns {
        1 => ("trial was", "it"),
        _ => ("trials were", "them"),
    };
    let valid: usize = run.summary.cells.iter().map(|cell| cell.valid).sum();
    let valid_reruns = run.summary.retakes.map_or(0, |retakes| retakes.valid);
    let are = if valid_reruns == 1 { "is" } else { "are" };
    format!(
        "{reruns} {were} rerun, since the machine had disturbed {disturbed} ({}): {valid_reruns} of these reruns {are} valid; \
         {valid} of {} trials are in all.",
        words::list(&places(group)),
        run.summary.trials_planned,
    )
}

/// Reports that the rerun limit was reached.
pub(super) fn noisy_machine(Trials { n: reruns, .. }: Trials) -> String {
    let noun = if reruns == 1 { "rerun" } else { "reruns" };
    format!(
        "This machine is too noisy for this experiment: the limit of {reruns} {noun} is reached, and disturbed trials remain."
    )
}

/// A mode with which the generator was late more often than by chance.
pub(super) fn late_generator(run: &Context<'_>, late: &LateGenerator) -> String {
    let Trials { n, of } = late.trials;
    format!(
        "The generator was late in {n} of {of} trials of {} and in {} of all others, more than by chance: the mode may be \
         what holds it up, and its figures are of the trials in which it did not.",
        run.subject(late.mode),
        late.of_all_modes.saturating_sub(n)
    )
}
