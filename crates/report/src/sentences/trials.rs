//! Trials that were excluded or rerun, and modes that could not run.

use super::said::Said;
use super::{Context, settings};
use crate::format;
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
pub(super) fn unavailable_modes(run: &Context<'_>, group: &[&UnavailableModeReason]) -> Said {
    let name = |mode: &&UnavailableModeReason| {
        let with = if mode.factors.is_empty() { "" } else { " with " };
        format!("{}{with}{}", mode.mode, settings(&mode.factors))
    };
    let hint = lack(run, group[0]).and_then(|(_, hint)| hint.as_ref());
    let modes = words::list(&group.iter().map(name).collect::<Vec<_>>());
    Said::from(format!("Not measured: {modes}: {}.", group[0].reason))
        .and(&hint.map(|hint| format!("What helps: {hint}.")).unwrap_or_default())
        .and("No other mode replaces what was not measured.")
}

/// A run with fewer trials than planned.
pub(super) fn cut_short(Trials { n, of }: Trials) -> String {
    format!("The run was cut short: {n} of {of} trials were recorded.")
}

/// Trials excluded from all estimates, by reason.
pub(super) fn excluded(run: &Context<'_>, group: &[&OfCell<ExcludedTrials>]) -> Said {
    let of_reason = || group.chunk_by(|one, next| one.content.reason == next.content.reason);
    let kinds: Vec<String> =
        of_reason().map(|of_reason| format!("{} {}", of_reason[0].content.reason, sum(of_reason))).collect();
    let excluded = sum(group);
    let verb = if excluded == 1 { "is" } else { "are" };
    let places: Vec<String> = of_reason()
        .map(|of_reason| format!("{}: {}", of_reason[0].content.reason, words::list(&places(of_reason))))
        .collect();
    let recorded = run.summary.trials_recorded;
    Said::from(format!(
        "{excluded} of {recorded} trials {verb} excluded from the estimates: {}.",
        kinds.join(", ")
    ))
    .and(&format!("{}.", places.join("; ")))
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
    let exact = counted(&|place| format!("{} ({})", mode(place), words::brief(place.conditions())));
    if exact.len() <= MAX_PLACES { exact } else { counted(&mode) }
}

/// Trials that were rerun, and whether the limit was reached.
pub(super) fn reruns(run: &Context<'_>, group: &[&OfCell<Empty>]) -> Said {
    let reruns = sum(group);
    let were = if reruns == 1 { "was" } else { "were" };
    let valid: usize = run.summary.cells.iter().map(|cell| cell.valid).sum();
    let (valid_reruns, too_noisy) =
        run.summary.retakes.map_or((0, false), |retakes| (retakes.valid, retakes.too_noisy));
    let are = if valid_reruns == 1 { "is" } else { "are" };
    let limit = if too_noisy { "; limit reached" } else { "" };
    let line = format!("{} {were} rerun{limit}.", format::counted(reruns as u64, "trial", "trials"));
    Said::from(line).and(&format!(
        "Disturbed by the machine: {}. {valid_reruns} of these reruns {are} in the estimates; {valid} of {} trials are valid.",
        words::list(&places(group)),
        run.summary.trials_planned,
    ))
}

/// Reports that the rerun limit was reached.
pub(super) fn noisy_machine(Trials { n: reruns, .. }: Trials) -> String {
    let reruns = format::counted(reruns as u64, "rerun", "reruns");
    format!(
        "This machine is too noisy for this experiment: disturbed trials remain; the limit of {reruns} is reached."
    )
}

/// A mode with which the generator was late more often than by chance.
pub(super) fn late_generator(run: &Context<'_>, late: &LateGenerator) -> String {
    let Trials { n, of } = late.trials;
    format!(
        "With {} the generator was late in {n} of {of} trials, in {} of all others: more than by chance. The mode itself may \
         delay it; its figures are of the trials in which the generator was on time.",
        run.subject(late.mode),
        late.of_all_modes.saturating_sub(n)
    )
}
