//! Findings about the graph: the slowest driver, the call that a mode makes longer, the service that it makes dearer.
//!
//! Each names the greatest of several candidates, which chance alone would lift above the others: its interval holds for
//! the greatest of that many. Copies in several namespaces are one candidate, but for drivers, of which one is to be named.

use super::run::Run;
use crate::copies::{Spread, local_name};
use crate::interval;
use crate::summary::resolution_us;
use crate::trials::is_valid;
use experiment::Mode;
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use experiment::schema::finding::figures;
use experiment::schema::{
    Cell, Estimate, Finding, FindingKind, FindingVerdict, HistogramSummary, Role, TrialRecord,
};
use std::collections::{BTreeMap, HashMap};

/// Of fewer drivers the median is no measure.
const MIN_DRIVERS: usize = 3;

/// A figure of each candidate, by repeat.
type Figures = BTreeMap<String, BTreeMap<usize, f64>>;

/// Findings of every measured cell, those of the reference cells first.
pub(super) fn graph(run: &Run<'_>) -> Vec<Finding> {
    let is_reference =
        |cell: &Cell| run.reference_cell(cell.mode).is_some_and(|reference| reference.key() == cell.key());
    let (reference, others): (Vec<&Cell>, Vec<&Cell>) =
        run.summary.cells.iter().partition(|cell| is_reference(cell));
    let of_cell = |cell| [slowest_driver(run, cell), added_time(run, cell), added_cpu(run, cell)];
    reference.into_iter().chain(others).flat_map(of_cell).flatten().collect()
}

fn slowest_driver(run: &Run<'_>, cell: &Cell) -> Option<Finding> {
    let trials = run.trials.of(cell.key());
    let views =
        || trials.iter().flat_map(|trial| trial.drivers().into_iter().map(|view| (trial.repeat, view)));
    let valid = || {
        let valid = views().filter(|(_, view)| view.is_valid());
        valid.filter_map(|(repeat, view)| Some((repeat, view.name, &view.result?.response_time_us)))
    };
    let enough = |times: &HistogramSummary| times.count as f64 * 0.01 >= SAMPLES_BEYOND_A_PERCENTILE - 1e-6;
    let resolves = valid().all(|(.., times)| enough(times));
    let mut figures = Figures::new();
    for (repeat, name, times) in valid() {
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
    let greatest = Greatest::of(&figures, |_| Some(&medians), resolution_us)?;
    let figure = if resolves { figures::P99 } else { figures::MEAN };
    Some(greatest.finding(cell, FindingKind::SlowestDriver, None, figure))
}

fn added_time(run: &Run<'_>, cell: &Cell) -> Option<Finding> {
    let against = cell.mode.floor()?;
    let figures = |mode: Mode| medians_of_calls(valid_trials(run, cell, mode));
    let (with, without) = (figures(cell.mode), figures(against));
    let greatest = Greatest::of(&with, |name| without.get(name), |us| 2.0 * resolution_us(us))?;
    Some(greatest.finding(cell, FindingKind::GreatestAddedTime, Some(against), figures::P50))
}

fn added_cpu(run: &Run<'_>, cell: &Cell) -> Option<Finding> {
    let against = cell.mode.floor()?;
    let figures = |mode: Mode| cpu_of_services(valid_trials(run, cell, mode));
    let (with, without) = (figures(cell.mode), figures(against));
    // Of a single one, or in a graph without calls, other findings say it.
    if with.len() < 2 {
        return None;
    }
    let greatest = Greatest::of(&with, |name| without.get(name), |_| 0.0)?;
    Some(greatest.finding(cell, FindingKind::GreatestAddedCpu, Some(against), figures::CPU))
}

fn valid_trials<'a>(run: &Run<'a>, cell: &Cell, mode: Mode) -> Vec<&'a TrialRecord> {
    run.trials.of(cell.conditions().cell(mode)).iter().copied().filter(|trial| is_valid(trial)).collect()
}

/// Median response time of each call, microseconds; of copies the median over them.
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

/// CPU of each service and of the proxies in its pods, cores; of copies the sum.
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
        for service in trial.services().iter() {
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

/// The candidate that is most above what it is compared with.
struct Greatest {
    name: String,
    /// Mean of its figure.
    value: f64,
    by: Estimate,
    candidates: usize,
}

impl Greatest {
    /// By the difference to `reference` in the same repeats.
    fn of<'a>(
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
        let by = interval::mean_of_greatest(by, resolution(greatest), candidates.len())?;
        Some(Self { name: (*name).clone(), value: mean(&own), by, candidates: candidates.len() })
    }

    fn finding(self, cell: &Cell, kind: FindingKind, against: Option<Mode>, figure: &str) -> Finding {
        Finding {
            against,
            candidates: Some(self.candidates),
            estimate: Some(self.by),
            verdict: Some(FindingVerdict::of_increase(&self.by)),
            n: Some(self.by.n),
            ..Finding::of_cell(kind, cell).about(self.name).with_value(figure, self.value)
        }
    }
}
