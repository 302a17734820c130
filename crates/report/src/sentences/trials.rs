//! Trials that were excluded or rerun, and modes that could not run.

use super::Context;
use results::{Finding, UnavailableMode};
use statistics::words;
use std::collections::BTreeMap;

/// Beyond this many cells, only modes are listed: the report lists every trial.
const MAX_PLACES: usize = 6;

/// The mode of a finding, with its missing prerequisite.
pub(super) fn unavailable<'a>(run: &Context<'a>, finding: &Finding) -> Option<&'a UnavailableMode> {
    let mut all = run.summary.host.refused_modes.iter();
    all.find(|unavailable| Some(unavailable.mode) == finding.mode && unavailable.factors == finding.factors)
}

/// Modes that could not run for the same reason.
pub(super) fn unavailable_modes(run: &Context<'_>, group: &[&Finding]) -> String {
    let name = |finding: &Finding| {
        let components = finding.factors.iter().map(|(key, value)| format!("{key} {value}"));
        let components: Vec<String> = components.collect();
        let with = if components.is_empty() { "" } else { " with " };
        Some(format!("{}{with}{}", finding.mode?, components.join(", ")))
    };
    let modes: Vec<String> = group.iter().filter_map(|finding| name(finding)).collect();
    let hint = unavailable(run, group[0]).and_then(|unavailable| unavailable.hint.as_ref());
    format!(
        "Not measured, and nothing stands in for it: {}: {}{}.",
        words::list(&modes),
        group[0].subject.as_deref().unwrap_or_default(),
        hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
    )
}

/// A run with fewer trials than planned.
pub(super) fn cut_short(finding: &Finding) -> String {
    let (recorded, planned) = (finding.n.unwrap_or(0), finding.of.unwrap_or(0));
    format!("The run was cut short: {recorded} of {planned} trials were recorded.")
}

/// Trials left out of all estimates, by reason.
pub(super) fn excluded(run: &Context<'_>, group: &[&Finding]) -> String {
    let kinds: Vec<String> = group
        .chunk_by(|one, next| one.subject == next.subject)
        .map(|of_reason| {
            let reason = of_reason[0].subject.as_deref().unwrap_or_default();
            format!("{reason} ({})", words::list(&places(of_reason)))
        })
        .collect();
    let excluded = sum(group);
    let verb = if excluded == 1 { "is" } else { "are" };
    format!(
        "{excluded} of {} trials {verb} excluded from the estimates: {}.",
        run.summary.trials_recorded,
        kinds.join("; ")
    )
}

fn sum(group: &[&Finding]) -> usize {
    group.iter().filter_map(|finding| finding.n).sum()
}

/// Number of trials per cell; per mode if the loads would make a long list.
fn places(group: &[&Finding]) -> Vec<String> {
    let counted = |name: &dyn Fn(&Finding) -> String| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for finding in group {
            *counts.entry(name(finding)).or_default() += finding.n.unwrap_or(0);
        }
        counts.into_iter().map(|(place, count)| format!("{count} of {place}")).collect::<Vec<_>>()
    };
    let mode = |finding: &Finding| finding.mode.map_or("", words::mode).to_owned();
    let load = |finding: &Finding| finding.conditions().map(words::described).unwrap_or_default();
    let exact = counted(&|finding| format!("{}, {}", mode(finding), load(finding)));
    if exact.len() <= MAX_PLACES { exact } else { counted(&mode) }
}

/// Trials that were rerun.
pub(super) fn reruns(run: &Context<'_>, group: &[&Finding]) -> String {
    let (were, disturbed) = match sum(group) {
        1 => ("trial was", "it"),
        _ => ("trials were", "them"),
    };
    let valid: usize = run.summary.cells.iter().map(|cell| cell.valid).sum();
    let valid_reruns = run.summary.retakes.map_or(0, |retakes| retakes.valid);
    let are = if valid_reruns == 1 { "is" } else { "are" };
    format!(
        "{} {were} run again, since the machine had disturbed {disturbed} ({}): {valid_reruns} of these reruns {are} valid; \
         {valid} of {} trials are in all.",
        sum(group),
        words::list(&places(group)),
        run.summary.trials_planned,
    )
}

/// Reports that the rerun limit was reached.
pub(super) fn noisy_machine(finding: &Finding) -> String {
    let reruns = finding.n.unwrap_or(0);
    let noun = if reruns == 1 { "rerun" } else { "reruns" };
    format!(
        "This machine is too noisy for this experiment: the limit of {reruns} {noun} is reached, and disturbed trials remain."
    )
}

/// A mode with which the generator was late more often than by chance.
pub(super) fn late_generator(run: &Context<'_>, finding: &Finding) -> String {
    let (late, of) = (finding.n.unwrap_or(0), finding.of.unwrap_or(0));
    format!(
        "The generator was late in {late} of {of} trials of {} and in {} of all others, more than by chance: the mode may be \
         what holds it up, and its figures are of the trials in which it did not.",
        finding.mode.map(|mode| run.subject(mode)).unwrap_or_default(),
        finding.candidates.unwrap_or(0).saturating_sub(late)
    )
}
