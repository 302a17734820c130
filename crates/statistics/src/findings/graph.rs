//! Findings about the graph: the slowest driver, the call that a mode makes longer, the service that it makes dearer.
//!
//! Each names the greatest of several candidates, which chance alone would lift above the others: its interval holds for
//! the greatest of that many. Copies in several namespaces are one candidate, but for drivers, of which one is to be named.

use super::run::Run;
use super::words;
use crate::copies::{Spread, local_name};
use crate::interval;
use crate::summary::resolution_us;
use crate::trials::is_valid;
use experiment::Mode;
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use experiment::schema::{
    Cell, Estimate, FindingKind, FindingRecord, FindingVerdict, HistogramSummary, Role, TrialRecord,
};
use std::collections::{BTreeMap, HashMap};

/// Of fewer drivers the median is no measure.
const MIN_DRIVERS: usize = 3;

/// A figure of each candidate, by repeat.
type Figures = BTreeMap<String, BTreeMap<usize, f64>>;

/// Findings of every measured cell.
pub(crate) fn records(run: &Run<'_>) -> Vec<FindingRecord> {
    let cells = run.summary.cells.iter();
    cells
        .flat_map(|cell| [slowest_driver(run, cell), added_time(run, cell), added_cpu(run, cell)])
        .flatten()
        .collect()
}

/// Sentences of the cells that the other findings speak of.
pub(super) fn sentences(run: &Run<'_>) -> Vec<String> {
    let is_reference = |record: &&FindingRecord| {
        run.reference_cell(record.mode)
            .is_some_and(|cell| (&cell.factors, &cell.load) == (&record.factors, &record.load))
    };
    let records = run.summary.finding_records.iter().filter(is_reference);
    records.map(|record| record.text.clone()).collect()
}

fn slowest_driver(run: &Run<'_>, cell: &Cell) -> Option<FindingRecord> {
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
    let (figure, what) =
        if resolves { ("response_time_p99_us", "p99") } else { ("response_time_mean_us", "mean") };
    let (name, value, by) =
        (&greatest.name, words::latency_value(greatest.value), words::latency(&greatest.by));
    let of_all = format!("the median of {} drivers", figures.len());
    let place = words::sentence(&words::cell(cell));
    let text = match FindingVerdict::of(&greatest.by) {
        FindingVerdict::Shown => {
            format!("{place}: the slowest driver is {name}, {what} {value}, {by} above {of_all}.")
        }
        FindingVerdict::NotShown => format!(
            "{place}: no driver is shown to be slower than {of_all}; {name} reads highest, {what} {value}, {by} above it."
        ),
        FindingVerdict::CannotTell => format!(
            "{place}: {name} reads highest of {} drivers, {what} {value}; one trial shows no difference.",
            figures.len()
        ),
    };
    Some(greatest.record(cell, FindingKind::SlowestDriver, None, figure, text))
}

fn added_time(run: &Run<'_>, cell: &Cell) -> Option<FindingRecord> {
    let against = cell.mode.floor()?;
    let figures = |mode: Mode| medians_of_calls(valid_trials(run, cell, mode));
    let (with, without) = (figures(cell.mode), figures(against));
    let greatest = Greatest::of(&with, |name| without.get(name), |us| 2.0 * resolution_us(us))?;
    let (name, by) = (&greatest.name, words::latency(&greatest.by));
    let (place, floor) = (words::sentence(&words::cell(cell)), words::mode(against));
    let value = words::latency_value(greatest.value);
    let calls = greatest.candidates;
    let text = match FindingVerdict::of(&greatest.by) {
        FindingVerdict::Shown => format!(
            "{place}: of {calls} calls between services, {name} grew most: median {value}, {by} above {floor}."
        ),
        FindingVerdict::NotShown => {
            format!(
                "{place}: no call between services is shown to take longer than with {floor}; {name} reads {by} more."
            )
        }
        FindingVerdict::CannotTell => {
            format!(
                "{place}: of {calls} calls between services, {name} reads {by} more than with {floor}; one trial shows no difference."
            )
        }
    };
    Some(greatest.record(cell, FindingKind::GreatestAddedTime, Some(against), "response_time_p50_us", text))
}

fn added_cpu(run: &Run<'_>, cell: &Cell) -> Option<FindingRecord> {
    let against = cell.mode.floor()?;
    let figures = |mode: Mode| cpu_of_services(valid_trials(run, cell, mode));
    let (with, without) = (figures(cell.mode), figures(against));
    // Of a single one, or in a graph without calls, other findings say it.
    if with.len() < 2 {
        return None;
    }
    let greatest = Greatest::of(&with, |name| without.get(name), |_| 0.0)?;
    let (name, by) = (&greatest.name, words::cores(&greatest.by));
    let (place, floor) = (words::sentence(&words::cell(cell)), words::mode(against));
    let value = words::cores_value(greatest.value);
    let services = greatest.candidates;
    let text = match FindingVerdict::of(&greatest.by) {
        FindingVerdict::Shown => format!(
            "{place}: of {services} services, {name} grew most in CPU: {value} with the proxies in its pods, {by} above {floor}."
        ),
        FindingVerdict::NotShown => {
            format!(
                "{place}: no service is shown to use more CPU than with {floor}, the proxies in its pods included; {name} reads {by} more."
            )
        }
        FindingVerdict::CannotTell => {
            format!(
                "{place}: of {services} services, {name} reads {by} more than with {floor}; one trial shows no difference."
            )
        }
    };
    Some(greatest.record(cell, FindingKind::GreatestAddedCpu, Some(against), "cpu_cores", text))
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

    fn record(
        self,
        cell: &Cell,
        kind: FindingKind,
        against: Option<Mode>,
        figure: &str,
        text: String,
    ) -> FindingRecord {
        FindingRecord {
            kind,
            mode: cell.mode,
            against,
            factors: cell.factors.clone(),
            load: cell.load.clone(),
            subject: self.name,
            candidates: self.candidates,
            figure: figure.to_owned(),
            value: self.value,
            estimate: self.by,
            verdict: FindingVerdict::of(&self.by),
            n: self.by.n,
            of: cell.places(),
            text,
        }
    }
}
