//! Noise of the machine: other programs or the hypervisor took CPU, or the generator was late although CPU was available.
//!
//! A figure that noise alone keeps out of the estimates is shown beside them (`cells[].disturbed`). On the user's word it is in
//! them ([`summarize_accepting_noise`]). Both use the same figures ([`freed`]): of each repeat those that no take of it has without
//! noise, each from the first take that has it. Any other reason against a figure stays: saturation, errors, a path that is not
//! proven, a trial that did not finish.

use crate::retakes::{OTHER_PROCESSES, is_late_by_machine, is_lateness};
use crate::summary::summarize;
use crate::trials::{TrialsByCell, is_usable, kind_of};
use experiment::Experiment;
use results::{
    AcceptedNoise, DriverView, Figure, Figures, Host, SpoiledFigures, Summary, TrialOutcome, TrialRecord,
    Verdict,
};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of the reason that the hypervisor took CPU.
const STEAL: &str = "steal";

/// A trial, and the same trial with the figures usable that noise alone keeps out.
pub(crate) struct Freed<'a> {
    pub(crate) trial: &'a TrialRecord,
    pub(crate) freed: TrialRecord,
}

impl Freed<'_> {
    /// True if a figure is usable once noise is accepted, and is not without.
    pub(crate) fn has(&self, figure: Figure) -> bool {
        is_usable(&self.freed, figure) && !is_usable(self.trial, figure)
    }

    /// Kinds of the noise.
    pub(crate) fn kinds(&self) -> BTreeSet<&str> {
        kinds_of_noise(self.trial)
    }
}

/// Kinds of the noise in a trial; empty if it did not finish.
fn kinds_of_noise(trial: &TrialRecord) -> BTreeSet<&str> {
    let is_noise = |kind: &&str| {
        *kind == OTHER_PROCESSES || *kind == STEAL || is_lateness(kind) && is_late_by_machine(trial)
    };
    let of_drivers = trial.drivers.iter().map(|driver| &driver.verdict);
    let reasons = [&trial.verdict].into_iter().chain(of_drivers).flat_map(|verdict| &verdict.reasons);
    let kinds = reasons.map(|reason| kind_of(reason)).filter(is_noise);
    if trial.outcome == TrialOutcome::Finished { kinds.collect() } else { BTreeSet::new() }
}

/// The trials of a cell in which noise alone keeps figures out of the estimates.
pub(crate) fn freed<'a>(trials: &[&'a TrialRecord]) -> Vec<Freed<'a>> {
    let mut takes = trials.to_vec();
    takes.sort_by_key(|trial| (trial.repeat, trial.take()));
    takes.chunk_by(|one, next| one.repeat == next.repeat).flat_map(of_repeat).collect()
}

/// Usable figures of a trial, and of each of its drivers by namespace and name.
#[derive(Default)]
struct Known<'a> {
    of_trial: Figures,
    of_drivers: BTreeMap<(&'a str, &'a str), Figures>,
}

fn of_repeat<'a>(takes: &[&'a TrialRecord]) -> Vec<Freed<'a>> {
    if takes.iter().all(|trial| kinds_of_noise(trial).is_empty()) {
        return Vec::new();
    }
    let usable = |is_usable: &dyn Fn(Figure) -> bool| -> Figures {
        Figure::ALL.into_iter().filter(|figure| is_usable(*figure)).collect()
    };
    let mut known = Known::default();
    for trial in takes {
        known.of_trial = known.of_trial.union(usable(&|figure| is_usable(trial, figure)));
        for driver in trial.drivers() {
            let figures = known.of_drivers.entry(name(&driver)).or_default();
            *figures = figures.union(usable(&|figure| driver.is_usable(figure)));
        }
    }
    takes.iter().filter_map(|trial| free(trial, &mut known)).collect()
}

fn name<'a>(driver: &DriverView<'a>) -> (&'a str, &'a str) {
    (driver.namespace, driver.name)
}

/// The trial with the figures usable that noise alone keeps out and that are not known yet; `None` if there are none.
fn free<'a>(trial: &'a TrialRecord, known: &mut Known<'a>) -> Option<Freed<'a>> {
    let noise = kinds_of_noise(trial);
    let freed_of = |verdict: &Verdict, known: &mut Figures| {
        let offered = kept_out(verdict, &noise).without(*known);
        *known = known.union(offered);
        (!offered.is_empty()).then(|| without_noise(verdict, &noise, offered))
    };
    let of_trial = freed_of(&trial.verdict, &mut known.of_trial);
    // The verdict of a single driver is the trial's.
    let several = if trial.drivers.len() > 1 { trial.drivers() } else { Vec::new() };
    let of_drivers: Vec<Option<Verdict>> = several
        .iter()
        .map(|driver| freed_of(driver.verdict, known.of_drivers.entry(name(driver)).or_default()))
        .collect();
    if of_trial.is_none() && of_drivers.iter().all(Option::is_none) {
        return None;
    }
    let mut freed = trial.clone();
    if let Some(verdict) = of_trial {
        freed.verdict = verdict;
    }
    for (driver, verdict) in freed.drivers.iter_mut().zip(of_drivers) {
        driver.verdict = verdict.unwrap_or_else(|| driver.verdict.clone());
    }
    Some(Freed { trial, freed })
}

/// Figures for which noise is the only reason.
fn kept_out(verdict: &Verdict, noise: &BTreeSet<&str>) -> Figures {
    let spoiled = |is_wanted: &dyn Fn(&str) -> bool| {
        let reasons = verdict.reasons_with_figures().filter(|(reason, _)| is_wanted(kind_of(reason)));
        reasons.fold(Figures::none(), |all, (_, figures)| all.union(figures))
    };
    spoiled(&|kind| noise.contains(kind)).without(spoiled(&|kind| !noise.contains(kind)))
}

/// The verdict in which noise spoils none of these figures. Its reasons stay.
fn without_noise(verdict: &Verdict, noise: &BTreeSet<&str>, figures: Figures) -> Verdict {
    let spoiled = verdict.reasons_with_figures().map(|(reason, spoiled)| {
        let kind = kind_of(reason);
        let left = if noise.contains(kind) { spoiled.without(figures) } else { spoiled };
        SpoiledFigures { reason: kind.to_owned(), figures: left }
    });
    let spoiled: Vec<SpoiledFigures> = spoiled.collect();
    let valid = !spoiled.iter().any(|one| one.figures.contains(Figure::P50));
    Verdict { valid, spoiled, ..verdict.clone() }
}

/// Number of trials by kind of noise.
pub(crate) fn counted_kinds<'a>(freed: impl IntoIterator<Item = &'a Freed<'a>>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for kind in freed.into_iter().flat_map(Freed::kinds) {
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    counts
}

/// Beginning of the note on a trial whose noise is accepted; the reason follows.
pub const ACCEPTED: &str = "noise-accepted: ";

/// Like [`summarize`], with noise of the machine accepted: figures that it alone keeps out are in the estimates. Also returns the
/// trials as they then are; a note on each that noise disturbed says so.
#[must_use]
pub fn summarize_accepting_noise(
    experiment: &Experiment,
    seed: u64,
    planned: usize,
    host: &Host,
    trials: &[TrialRecord],
) -> (Summary, Vec<TrialRecord>) {
    let (accepted, noise) = accept(trials);
    let mut summary = summarize(experiment, seed, planned, host, &accepted);
    summary.noise_accepted = Some(noise);
    let by_cell = TrialsByCell::new(&accepted);
    for cell in &mut summary.cells {
        cell.noise_accepted = self::accepted(by_cell.of(cell.key()).iter().copied());
    }
    (summary, accepted)
}

/// A trial by itself, with noise of the machine accepted.
#[must_use]
pub fn accepting_noise(trial: &TrialRecord) -> TrialRecord {
    let (mut accepted, _) = accept(std::slice::from_ref(trial));
    accepted.remove(0)
}

/// Number of trials that noise disturbed and whose figures are in estimates because it is accepted.
pub(crate) fn accepted<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> usize {
    let is_accepted =
        |trial: &&TrialRecord| trial.verdict.notes.iter().any(|note| note.starts_with(ACCEPTED));
    trials.into_iter().filter(is_accepted).count()
}

fn accept(trials: &[TrialRecord]) -> (Vec<TrialRecord>, AcceptedNoise) {
    let by_cell = TrialsByCell::new(trials);
    let mut all: Vec<Freed<'_>> = by_cell.cells().flat_map(freed).collect();
    let noise = AcceptedNoise { trials: all.len(), of: trials.len(), reasons: counted_kinds(&all) };
    let changed = |trial: &TrialRecord| match all.iter().position(|one| std::ptr::eq(one.trial, trial)) {
        Some(position) => noted(all.swap_remove(position)),
        None => trial.clone(),
    };
    (trials.iter().map(changed).map(noise_last).collect(), noise)
}

/// The trial with reasons of noise behind all others, since the first one is said of it: noise that is accepted explains nothing.
fn noise_last(mut trial: TrialRecord) -> TrialRecord {
    let noise: BTreeSet<String> = kinds_of_noise(&trial).into_iter().map(str::to_owned).collect();
    if noise.is_empty() {
        return trial;
    }
    let verdict = &mut trial.verdict;
    let of_reasons: Vec<SpoiledFigures> = verdict
        .reasons_with_figures()
        .map(|(reason, figures)| SpoiledFigures { reason: kind_of(reason).to_owned(), figures })
        .collect();
    let mut pairs: Vec<(String, SpoiledFigures)> =
        std::mem::take(&mut verdict.reasons).into_iter().zip(of_reasons).collect();
    pairs.sort_by_key(|(_, spoiled)| noise.contains(&spoiled.reason));
    (verdict.reasons, verdict.spoiled) = pairs.into_iter().unzip();
    trial
}

fn noted(one: Freed<'_>) -> TrialRecord {
    let kinds = one.kinds();
    let reasons = one.trial.verdict.reasons.iter().filter(|reason| kinds.contains(kind_of(reason)));
    let notes: Vec<String> = reasons.map(|reason| format!("{ACCEPTED}{reason}")).collect();
    let mut freed = one.freed;
    freed.verdict.notes.extend(notes);
    freed
}

#[cfg(test)]
mod tests;
