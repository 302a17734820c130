//! Figures that are spoiled in some trials of a cell.

use crate::trials::{is_usable, kind_of};
use results::{Clock, Figure, Metric, Role, SpoiledTrials, TrialRecord};
use std::collections::{BTreeMap, BTreeSet};

/// Each figure of a cell that is spoiled in a repeat, with the values that are left out of the estimates.
pub(super) fn spoiled(trials: &[&TrialRecord]) -> Vec<SpoiledTrials> {
    Figure::ALL.into_iter().filter_map(|figure| of_figure(figure, trials)).collect()
}

fn of_figure(figure: Figure, trials: &[&TrialRecord]) -> Option<SpoiledTrials> {
    // The last take per repeat, unless a take of the repeat is usable.
    let mut without: BTreeMap<usize, &TrialRecord> = BTreeMap::new();
    let mut usable: BTreeSet<usize> = BTreeSet::new();
    for trial in trials {
        if is_usable(trial, figure) {
            usable.insert(trial.repeat);
        }
        without.insert(trial.repeat, trial);
    }
    without.retain(|repeat, _| !usable.contains(repeat));
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for kind in without.values().flat_map(|trial| kinds(trial, figure)) {
        *reasons.entry(kind.to_owned()).or_default() += 1;
    }
    let values = || without.values().filter_map(|trial| value(trial, figure));
    (!without.is_empty()).then(|| SpoiledTrials {
        figure,
        trials: without.len(),
        reasons,
        least: values().reduce(f64::min),
        greatest: values().reduce(f64::max),
    })
}

/// Distinct kinds of the reasons that spoil a figure of a trial.
fn kinds(trial: &TrialRecord, figure: Figure) -> BTreeSet<&str> {
    let reasons = trial.verdict.reasons_with_figures().filter(|(_, figures)| figures.contains(figure));
    let kinds: BTreeSet<&str> = reasons.map(|(reason, _)| kind_of(reason)).collect();
    match (kinds.is_empty(), &trial.result) {
        (false, _) => kinds,
        (true, None) => BTreeSet::from(["no result"]),
        (true, Some(_)) => BTreeSet::from(["no responses"]),
    }
}

fn value(trial: &TrialRecord, figure: Figure) -> Option<f64> {
    let result = trial.result.as_ref()?;
    match figure {
        Figure::Throughput => Some(result.rate.completed),
        Figure::Cpu => trial.cpu_cores_of(Role::Proxy),
        Figure::Memory => trial.sum_under_load(Role::Proxy, Metric::MemoryBytes),
        Figure::Network => None,
        time => Clock::of_load(&trial.load).of(trial).filter(|times| times.count > 0)?.figure(time),
    }
}
