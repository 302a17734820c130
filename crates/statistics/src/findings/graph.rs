//! Findings about the graph: the slowest driver, the call that a mode slows down most, the service whose CPU
//! it raises most.
//!
//! Each names the greatest of several candidates, which chance alone would lift above the others. Its
//! interval therefore holds for the greatest of that many. Whether it is shown is decided among everything
//! that the run tests. Copies in several namespaces are one candidate, except for drivers, of which one is
//! named.

use super::run::Run;
use crate::copies::{Spread, local_name};
use crate::figure_table::Difference;
use crate::interval;
use crate::summary::resolution_us;
use crate::trials::{TrialsByCell, are_enough, events_beyond, is_valid};
use results::finding::{self, GreatestAdded, OfCell, Value};
use results::{
    Cell, Clock, Estimate, Figure, Finding, FindingVerdict, Metric, Mode, OwnedCellKey, Role, TrialRecord,
};
use std::collections::{BTreeMap, HashMap};

/// With fewer drivers the median is not a useful reference.
const MIN_DRIVERS: usize = 3;

/// A figure of each candidate, by repeat.
type Figures = BTreeMap<String, BTreeMap<usize, f64>>;

/// Findings of every measured cell, those of the reference cells first.
pub(super) fn graph(run: &Run<'_>) -> Vec<Finding> {
    let is_reference =
        |cell: &Cell| run.reference_cell(cell.mode).is_some_and(|reference| reference.key() == cell.key());
    let (reference, others): (Vec<&Cell>, Vec<&Cell>) =
        run.summary.cells.iter().partition(|cell| is_reference(cell));
    let of_cell = |cell: &'_ Cell| {
        let key = cell.key();
        let greatest = run.greatest.iter().filter(move |greatest| greatest.cell.key() == key);
        greatest.map(|greatest| greatest.finding(cell)).collect::<Vec<_>>()
    };
    reference.into_iter().chain(others).flat_map(of_cell).collect()
}

/// The greatest driver, call and service of each cell, with their p-values: they are part of what a run
/// tests.
pub(crate) fn greatest(cells: &[OwnedCellKey], trials: &TrialsByCell<'_>) -> Vec<Greatest> {
    let of_cell = |cell| [slowest_driver(trials, cell), added_time(trials, cell), added_cpu(trials, cell)];
    cells.iter().flat_map(of_cell).flatten().collect()
}

fn slowest_driver(trials: &TrialsByCell<'_>, cell: &OwnedCellKey) -> Option<Greatest> {
    let trials = trials.of(cell.key());
    let views =
        || trials.iter().flat_map(|trial| trial.drivers().into_iter().map(|view| (trial.repeat, view)));
    let valid = || {
        let valid = views().filter(|(_, view)| view.is_valid());
        valid.filter_map(|(repeat, view)| Some((repeat, view.name, view.result?)))
    };
    let resolves = valid()
        .all(|(.., result)| events_beyond(result, Clock::ResponseTime, Figure::P99).is_some_and(are_enough));
    let mut figures = Figures::new();
    for (repeat, name, result) in valid() {
        let times = &result.response_time_us;
        let us = if resolves { times.p99 } else { times.mean };
        let Some(us) = us else { continue };
        figures.entry(name.to_owned()).or_default().entry(repeat).or_insert(us);
    }
    if figures.len() < MIN_DRIVERS {
        return None;
    }
    let mut of_repeats: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (repeat, us) in figures.values().flatten() {
        of_repeats.entry(*repeat).or_default().push(*us);
    }
    let medians: BTreeMap<usize, f64> =
        of_repeats.into_iter().filter_map(|(repeat, all)| Some((repeat, Spread::new(all)?.median))).collect();
    let figure = if resolves { Metric::ResponseTimeP99Us } else { Metric::ResponseTimeMeanUs };
    let reported = Reported { cell, of: GreatestOf::Drivers, figure };
    Greatest::new(&reported, &figures, |_| Some(&medians), resolution_us)
}

fn added_time(trials: &TrialsByCell<'_>, cell: &OwnedCellKey) -> Option<Greatest> {
    let against = cell.mode.floor()?;
    let figures = |mode: Mode| medians_of_calls(valid_trials(trials, cell, mode));
    let (with, without) = (figures(cell.mode), figures(against));
    let reported = Reported { cell, of: GreatestOf::Calls { against }, figure: Metric::ResponseTimeP50Us };
    Greatest::new(&reported, &with, |name| without.get(name), |us| 2.0 * resolution_us(us))
}

fn added_cpu(trials: &TrialsByCell<'_>, cell: &OwnedCellKey) -> Option<Greatest> {
    let against = cell.mode.floor()?;
    let figures = |mode: Mode| cpu_of_services(valid_trials(trials, cell, mode));
    let (with, without) = (figures(cell.mode), figures(against));
    // A single candidate, or a graph without calls, is covered by other findings.
    if with.len() < 2 {
        return None;
    }
    let reported = Reported { cell, of: GreatestOf::Services { against }, figure: Metric::CpuCores };
    Greatest::new(&reported, &with, |name| without.get(name), |_| 0.0)
}

fn valid_trials<'a>(trials: &TrialsByCell<'a>, cell: &OwnedCellKey, mode: Mode) -> Vec<&'a TrialRecord> {
    let cell = trials.cell_under(cell.conditions(), mode);
    let trials = cell.map_or(&[][..], |cell| trials.of(cell));
    trials.iter().copied().filter(|trial| is_valid(trial)).collect()
}

/// Median response time of each call in microseconds; for copies, the median over them.
fn medians_of_calls(trials: Vec<&TrialRecord>) -> Figures {
    let mut figures = Figures::new();
    for trial in trials {
        let mut copies: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
        for edge in &trial.edges {
            let times = edge.response_time_us.as_ref().filter(|times| times.count > 0);
            if let Some(median) = times.and_then(|times| times.p50) {
                copies.entry((local_name(&edge.from), local_name(&edge.to))).or_default().push(median);
            }
        }
        for ((from, to), all) in copies {
            if let Some(spread) = Spread::new(all) {
                figures.entry(format!("{from} → {to}")).or_default().insert(trial.repeat, spread.median);
            }
        }
    }
    figures
}

/// CPU of each service and of the proxies in its pods, in cores; for copies, the sum.
fn cpu_of_services(trials: Vec<&TrialRecord>) -> Figures {
    let mut figures = Figures::new();
    for trial in trials {
        let mut of_pods: HashMap<&str, f64> = HashMap::new();
        for (usage, pod) in trial.components.iter().filter_map(|usage| Some((usage, usage.pod.as_deref()?))) {
            if matches!(usage.role, Role::App | Role::Proxy) {
                *of_pods.entry(pod).or_default() += usage.cpu_cores();
            }
        }
        let pods: HashMap<&str, &str> = trial
            .components
            .iter()
            .filter_map(|usage| Some((usage.name.as_str(), usage.pod.as_deref()?)))
            .collect();
        for service in &trial.services {
            let cores = service
                .components
                .iter()
                .map(|component| of_pods.get(pods.get(component.as_str())?).copied());
            if let Some(cores) = cores.sum::<Option<f64>>().filter(|_| !service.components.is_empty()) {
                *figures.entry(service.name.clone()).or_default().entry(trial.repeat).or_default() += cores;
            }
        }
    }
    figures
}

/// Candidates, and the mode that calls and services are compared with.
#[derive(Clone, Copy, Debug)]
enum GreatestOf {
    Drivers,
    Calls { against: Mode },
    Services { against: Mode },
}

/// Everything that a finding about the greatest of several contains, except its figures.
struct Reported<'a> {
    cell: &'a OwnedCellKey,
    of: GreatestOf,
    figure: Metric,
}

/// The candidate that exceeds its reference the most.
#[derive(Debug)]
pub(crate) struct Greatest {
    cell: OwnedCellKey,
    of: GreatestOf,
    figure: Metric,
    name: String,
    /// Mean of the candidate's figure.
    value: f64,
    /// Number of candidates, each of which is compared with its reference.
    pub(crate) candidates: usize,
    /// Difference to the reference, as tested by the run.
    pub(crate) difference: Difference,
    /// Whether the difference is shown, among everything that the run tests.
    pub(crate) verdict: FindingVerdict,
}

impl Greatest {
    /// Selects by the difference to `reference` in the same repeats.
    fn new<'a>(
        reported: &Reported<'_>,
        figures: &Figures,
        reference: impl Fn(&str) -> Option<&'a BTreeMap<usize, f64>>,
        resolution: impl Fn(f64) -> f64,
    ) -> Option<Self> {
        let differences = |name: &str, by_repeat: &BTreeMap<usize, f64>| -> Option<Vec<f64>> {
            let reference = reference(name)?;
            let pairs = by_repeat.iter().filter_map(|(repeat, figure)| Some(figure - reference.get(repeat)?));
            Some(pairs.collect::<Vec<f64>>()).filter(|pairs| !pairs.is_empty())
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let candidates: Vec<(&String, Vec<f64>)> =
            figures.iter().filter_map(|(name, figure)| Some((name, differences(name, figure)?))).collect();
        let (name, by) =
            candidates.iter().max_by(|(_, one), (_, other)| mean(one).total_cmp(&mean(other)))?;
        let own: Vec<f64> = figures[*name].values().copied().collect();
        let greatest = own.iter().copied().fold(0.0, f64::max);
        // Any of the candidates could have been the greatest (Bonferroni).
        let p_value =
            interval::p_value_of_mean(by).map(|p_value| (p_value * candidates.len() as f64).min(1.0));
        let simultaneous = interval::mean_of_greatest(by, resolution(greatest), candidates.len())?;
        let by_itself = interval::mean(by, resolution(greatest))?;
        let alone = by_itself
            .low
            .zip(by_itself.high)
            .filter(|_| by_itself.excludes_zero())
            .map(|(low, high)| [low, high]);
        let estimate = Estimate { alone, ..simultaneous };
        Some(Self {
            cell: reported.cell.clone(),
            of: reported.of,
            figure: reported.figure,
            name: (*name).clone(),
            value: mean(&own),
            candidates: candidates.len(),
            difference: Difference::new(estimate, p_value, by.len() as f64 - 1.0),
            verdict: FindingVerdict::CannotTell,
        })
    }

    fn finding(&self, cell: &Cell) -> Finding {
        let difference = self.difference.estimate;
        let greatest = finding::Greatest {
            subject: self.name.clone(),
            candidates: self.candidates,
            value: Value { figure: self.figure, value: self.value },
            difference,
            verdict: self.verdict,
        };
        let added = |against| {
            OfCell::new(cell, GreatestAdded { greatest: greatest.clone(), against }).resting_on(&difference)
        };
        match self.of {
            GreatestOf::Drivers => {
                Finding::SlowestDriver(OfCell::new(cell, greatest).resting_on(&difference))
            }
            GreatestOf::Calls { against } => Finding::GreatestAddedTime(added(against)),
            GreatestOf::Services { against } => Finding::GreatestAddedCpu(added(against)),
        }
    }
}
