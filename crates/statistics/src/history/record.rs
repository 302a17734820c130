//! Lines of a history from what was measured: a run's directory, a load's result, the result of another generator.

use super::percentile::with_interval;
use crate::comparison::figures_of;
use crate::interval;
use crate::trials::{TrialsByCell, are_enough, events_beyond, is_valid, usable};
use crate::words;
use experiment::Experiment;
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use results::foreign::{ForeignResult, Step};
use results::{
    AcceptedNoise, Clock, Estimate, Factors, Figure, HISTORY_SCHEMA, HistogramSummary, HistoryFigure,
    HistoryRun, Host, LatencyHistogram, LoadPoint, LoadResult, Metric, Mode, OwnedCellKey, RUN_SOURCE,
    Summary, TrialRecord,
};
use std::collections::BTreeMap;

const BYTES_IN_GIB: f64 = (1_u64 << 30) as f64;
/// Digits of a build's hash.
const HASH_DIGITS: usize = 12;
/// Of a load of another program, more failed requests than this share make its figures those of the rest.
const MAX_FAILED_SHARE: f64 = 0.01;
/// … and fewer answers than this share of the offered rate those of another load.
const MIN_ACHIEVED_SHARE: f64 = 0.95;
/// Sections of an experiment that do not change what a run measures, or that name the programs.
const LEFT_OUT: [&str; 11] = [
    "components",
    "fresh",
    "headline",
    "modes",
    "name",
    "objective",
    "published",
    "question",
    "repeats",
    "retakes",
    "seed",
];

/// Keys of the load that are part of a cell, which is compared with its like.
const OF_CELLS: [&str; 2] = ["rate", "clients"];

/// Times of loads. Those that both sides of a comparison have are not all compared ([`super::compare`]).
const OF_LOADS: [Clock; 5] =
    [Clock::FirstByte, Clock::FirstEvent, Clock::EventGap, Clock::ResponseTime, Clock::ServiceTime];

/// Name of facts that a source does not tell.
pub(super) const UNKNOWN: &str = "unknown";

/// A measurement as a line of a history, and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The line.
    pub run: HistoryRun,
    /// Reasons why the whole measurement says nothing, such as an interruption.
    pub failures: Vec<String>,
    /// Cells without a usable median.
    pub missing: Vec<String>,
}

/// A finished run, as read from its directory.
#[derive(Clone, Copy, Debug)]
pub struct FinishedRun<'a> {
    /// The directory, as given.
    pub path: &'a str,
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Text of `experiment.yaml`.
    pub experiment_yaml: &'a str,
    /// The machine.
    pub host: &'a Host,
    /// The trials.
    pub trials: &'a [TrialRecord],
    /// Summary over all trials.
    pub summary: &'a Summary,
}

/// The line of a run.
#[must_use]
pub fn of_run(finished: &FinishedRun<'_>) -> Recorded {
    let FinishedRun { path, experiment, experiment_yaml, host, trials, summary } = *finished;
    let by_cell = TrialsByCell::new(trials);
    let (mut figures, mut missing) = (Vec::new(), Vec::new());
    for cell in &summary.cells {
        let key = OwnedCellKey::from(cell.key());
        for (number, metric) in figures_of(experiment, &key).into_iter().enumerate() {
            let usable = usable(by_cell.of(cell.key()), metric.spoiled_by());
            let values: Vec<f64> = usable.into_iter().filter_map(|trial| metric.read(trial)).collect();
            // A median of 0 is none; another figure may be 0, such as the CPU of an idle proxy.
            let is_value = |mean: &Estimate| mean.estimate > 0.0 || mean.estimate == 0.0 && number > 0;
            match interval::mean(&values, 0.0).filter(is_value) {
                Some(estimate) => figures.push(HistoryFigure { key: metric, cell: key.clone(), estimate }),
                None if number == 0 => {
                    missing.push(format!("{path}: no usable median of {}", words::place(key.key())));
                }
                None => {}
            }
        }
    }
    let mut failures = Vec::new();
    if summary.places_recorded() < summary.trials_planned {
        failures.push(format!(
            "{path}: the run was cut short: {} of {} trials were measured",
            summary.places_recorded(),
            summary.trials_planned
        ));
    }
    if figures.is_empty() {
        failures.push(format!("{path}: no trial has a usable figure"));
    }
    let run = HistoryRun {
        source: RUN_SOURCE.to_owned(),
        name: summary.name.clone(),
        started_at: trials.iter().map(|trial| trial.started_at.clone()).min(),
        seed: Some(summary.seed),
        environment: environment(host),
        settings: settings(experiment_yaml),
        programs: programs(host),
        trials: trials.len(),
        valid: trials.iter().filter(|trial| is_valid(trial)).count(),
        figures,
        limits: summary.noise_accepted.iter().map(noise_limit).collect(),
        ..line(path)
    };
    Recorded { run, failures, missing }
}

/// Limit of a run whose figures are also those of trials that noise of the machine disturbed.
fn noise_limit(noise: &AcceptedNoise) -> String {
    format!("noise of the machine is accepted: it disturbed {} of {} trials", noise.trials, noise.of)
}

fn line(path: &str) -> HistoryRun {
    HistoryRun {
        schema: HISTORY_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run: path.to_owned(),
        ..HistoryRun::default()
    }
}

/// Facts that change figures of the same programs.
fn environment(host: &Host) -> BTreeMap<String, String> {
    let meshmeter = host.versions.iter().find(|version| version.name == "meshmeter");
    let facts = [
        ("CPU", Some(host.cpu_model.clone())),
        ("CPUs", Some(host.cpus.to_string())),
        ("threads per core", Some(host.threads_per_core.to_string())),
        ("memory", Some(format!("{:.0} GiB", host.memory_bytes as f64 / BYTES_IN_GIB))),
        ("architecture", Some(host.architecture.clone())),
        ("virtualization", host.virtualization.clone()),
        ("kernel", Some(host.kernel.clone())),
        ("clock source", host.clock_source.clone()),
        ("distribution", Some(host.distribution.clone())),
        ("cgroups", Some(host.cgroups.clone())),
        ("privileges", Some(host.privileges.clone())),
        ("cluster", host.cluster.as_ref().and_then(|cluster| cluster.uid.clone())),
        ("pacing", host.pacing.as_ref().map(|pacing| pacing.pacing.name().to_owned())),
        ("Meshmeter", meshmeter.map(|version| version.version.clone())),
    ];
    let known = |(name, value): (&str, Option<String>)| {
        Some((name.to_owned(), value.filter(|value| !value.is_empty())?))
    };
    facts.into_iter().filter_map(known).collect()
}

/// Versions and builds of the programs, Meshmeter's commit included.
fn programs(host: &Host) -> BTreeMap<String, String> {
    let mut programs: BTreeMap<String, String> = BTreeMap::new();
    let others =
        host.versions.iter().filter(|version| !["meshmeter", "linux"].contains(&version.name.as_str()));
    for version in others {
        let build = version.sha256.as_deref().map(|hash| &hash[..hash.len().min(HASH_DIGITS)]);
        let text =
            build.map_or_else(|| version.version.clone(), |build| format!("{} ({build})", version.version));
        programs
            .entry(version.name.clone())
            .and_modify(|all| *all = format!("{all}, {text}"))
            .or_insert(text);
    }
    let commit = host.build.as_ref().and_then(|build| build.commit.as_deref());
    programs.extend(
        commit.map(|commit| {
            ("Meshmeter's commit".to_owned(), commit[..commit.len().min(HASH_DIGITS)].to_owned())
        }),
    );
    programs
}

/// Lines of an experiment that change what is measured, each with the section that it is in.
fn settings(yaml: &str) -> Vec<String> {
    let (mut lines, mut section, mut key) = (Vec::new(), "", "");
    for line in yaml.lines() {
        let name = line.split(':').next().unwrap_or_default();
        let is_top = line.starts_with(|first: char| first.is_ascii_lowercase());
        if is_top {
            (section, key) = (name, "");
        } else if name
            .strip_prefix("  ")
            .is_some_and(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
        {
            key = name.trim();
        }
        let is_of_cells = section == "load" && OF_CELLS.contains(&key);
        if LEFT_OUT.contains(&section) || is_of_cells || line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        lines.push(if is_top { line.trim_end().to_owned() } else { format!("{section}: {}", line.trim()) });
    }
    lines
}

/// The line of a load's result.
#[must_use]
pub fn of_load(path: &str, result: &LoadResult) -> Recorded {
    let cell = cell_of_load(LoadPoint {
        protocol: result.protocol.name().to_lowercase(),
        rate: result.rate.offered,
        clients: result.clients,
        connections: result.connections,
        ..load_point()
    });
    let figure = |metric: Metric, estimate| HistoryFigure { key: metric, cell: cell.clone(), estimate };
    let is_usable = |figure| result.verdict.is_usable(figure);
    let mut figures = Vec::new();
    for clock in OF_LOADS {
        let Some(times) = result.times(clock) else { continue };
        let steps = steps(times);
        for (key, value) in values_of(clock, |figure| times.figure(figure).filter(|_| is_usable(figure))) {
            let quantile = key.spoiled_by().quantile();
            let events = (clock == Clock::ResponseTime)
                .then(|| events_beyond(result, clock, key.spoiled_by()))
                .flatten();
            if has_enough(key.spoiled_by(), Some(times.requests())) {
                let estimate = quantile.map_or_else(
                    || Estimate::single(value),
                    |quantile| with_interval(value, &steps, times.requests(), quantile, events),
                );
                figures.push(figure(key, estimate));
            }
        }
    }
    if result.rate.offered.is_none() && is_usable(Figure::Throughput) && result.rate.completed > 0.0 {
        figures.push(figure(Metric::RateCompleted, Estimate::single(result.rate.completed)));
    }
    let mut failures = Vec::new();
    if result.interrupted {
        failures.push(format!("{path}: the load was interrupted after {:.0} s", result.duration_s));
    }
    if !is_usable(Figure::P50) || figures.is_empty() {
        let why = result.verdict.reasons.first().map_or("no request was answered", String::as_str);
        failures.push(format!("{path}: its median is not usable: {why}"));
    }
    let mut run = HistoryRun {
        source: "load".to_owned(),
        name: result.urls.join(" "),
        started_at: Some(result.started_at.clone()),
        environment: BTreeMap::from([
            ("Meshmeter".to_owned(), result.version.clone()),
            ("load".to_owned(), load_text(&cell.load)),
        ]),
        settings: settings_of_load(result),
        trials: 1,
        valid: usize::from(failures.is_empty()),
        figures,
        ..line(path)
    };
    run.limits
        .push("load: a result does not record its machine: whether both are the same is unknown".to_owned());
    run.limits.push("load: an interval covers the requests of one load alone".to_owned());
    Recorded { run, failures, missing: Vec::new() }
}

/// Options of a load that change its figures: of a short window, or without a warm-up, the start is a greater part. The window
/// of merged results is from the earliest start to the latest end, which is another one in each.
fn settings_of_load(result: &LoadResult) -> Vec<String> {
    let window = || format!("window: {} s", result.duration_s);
    let warmup = if result.warmup.sent > 0 { "yes" } else { "none" };
    [format!("threads: {}", result.threads), format!("streams: {}", result.streams)]
        .into_iter()
        .chain(result.merged.is_none().then(window))
        .chain([format!("warm-up: {warmup}")])
        .collect()
}

/// The line of another generator's result.
#[must_use]
pub fn of_foreign(path: &str, result: &ForeignResult) -> Recorded {
    let answered = result.answered;
    let cell = cell_of_load(LoadPoint {
        rate: result.offered,
        clients: result.connections.filter(|_| result.offered.is_none()),
        connections: result.connections.unwrap_or(0),
        ..load_point()
    });
    let figure = |metric: Metric, estimate| HistoryFigure { key: metric, cell: cell.clone(), estimate };
    let mut limits = result.limits.clone();
    let mut figures = Vec::new();
    // Counts of the histogram may be those of a part of the load.
    let total = result.steps.iter().map(|step| step.count).sum::<u64>().saturating_add(result.failed);
    for (key, value) in values_of(result.clock, |figure| result.times_us.get(&figure).copied()) {
        let figure_of_times = key.spoiled_by();
        if !has_enough(figure_of_times, answered) {
            limits.push(format!(
                "{}: {} is left out: fewer than {SAMPLES_BEYOND_A_PERCENTILE} responses lie beyond it",
                result.tool,
                figure_of_times.name()
            ));
            continue;
        }
        let estimate = match figure_of_times.quantile() {
            Some(quantile) => with_interval(value, &result.steps, total, quantile, None),
            None => Estimate::single(value),
        };
        figures.push(figure(key, estimate));
    }
    if let Some(rate) = result.rate_completed.filter(|rate| result.offered.is_none() && *rate > 0.0) {
        figures.push(figure(Metric::RateCompleted, Estimate::single(rate)));
    }
    limits.push(format!(
        "{}: a result does not record its machine: whether both are the same is unknown",
        result.tool
    ));
    let mut failures =
        if figures.is_empty() { vec![format!("{path}: it has no figure to compare")] } else { Vec::new() };
    failures.extend(shortfalls(result).into_iter().map(|shortfall| format!("{path}: {shortfall}")));
    let version = result.version.clone().map(|version| (result.tool.to_owned(), version));
    // Some write the rate that they achieved, which is another one in each run.
    let load = LoadPoint { rate: cell.load.rate.map(three_digits), ..cell.load.clone() };
    let run = HistoryRun {
        source: result.tool.to_owned(),
        name: result.target.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        started_at: result.started_at.clone(),
        environment: version.into_iter().chain([("load".to_owned(), load_text(&load))]).collect(),
        trials: 1,
        valid: usize::from(failures.is_empty()),
        figures,
        limits,
        ..line(path)
    };
    Recorded { run, failures, missing: Vec::new() }
}

fn load_point() -> LoadPoint {
    LoadPoint { protocol: UNKNOWN.to_owned(), ..LoadPoint::of_fleet() }
}

/// Reasons why the figures of a load are not those of the load that its file names.
fn shortfalls(result: &ForeignResult) -> Vec<String> {
    let lost = result.failed.saturating_add(result.errors);
    let all = result.answered.unwrap_or(0).saturating_add(result.failed);
    let failed = (lost as f64 > MAX_FAILED_SHARE * all as f64)
        .then(|| format!("{lost} of {all} requests failed: its figures are not those of this load"));
    let short = result.offered.zip(result.rate_completed).and_then(|(offered, completed)| {
        let is_short = completed < MIN_ACHIEVED_SHARE * offered;
        is_short
            .then(|| format!("{completed:.1} of {offered:.1} requests/s were answered: the load was another"))
    });
    failed.into_iter().chain(short).collect()
}

fn three_digits(value: f64) -> f64 {
    let unit = 10_f64.powf(value.abs().log10().floor() - 2.0);
    if unit.is_normal() { (value / unit).round() * unit } else { value }
}

/// A load in words, such as `1000 requests/s, 4 connections, http/1.1`.
fn load_text(load: &LoadPoint) -> String {
    let is_known = load.rate.is_some() || load.clients.is_some();
    let strength = if is_known { words::offered(load) } else { "of unknown rate".to_owned() };
    let connections = (load.connections > 0).then(|| format!("{} connections", load.connections));
    let protocol = (load.protocol != UNKNOWN).then(|| load.protocol.clone());
    [Some(strength), connections, protocol].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn cell_of_load(load: LoadPoint) -> OwnedCellKey {
    OwnedCellKey { mode: Mode::None, factors: Factors::new(), load }
}

/// Figures of times that are compared: the mean and percentiles. A maximum is one request.
fn values_of(clock: Clock, value: impl Fn(Figure) -> Option<f64>) -> Vec<(Metric, f64)> {
    let compared = Figure::TIMES.into_iter().filter(|figure| *figure != Figure::Max);
    compared
        .filter_map(|figure| Some((clock.metric(figure)?, value(figure).filter(|value| *value >= 0.0)?)))
        .collect()
}

/// True if enough responses lie beyond a percentile, or their number is unknown.
fn has_enough(figure: Figure, requests: Option<u64>) -> bool {
    let beyond =
        figure.quantile().zip(requests).map(|(quantile, requests)| requests as f64 * (1.0 - quantile));
    beyond.is_none_or(are_enough)
}

/// Histogram of a load as steps.
fn steps(times: &HistogramSummary) -> Vec<Step> {
    let histogram = LatencyHistogram::decode(&times.histogram).unwrap_or_default();
    let mut from_us = 0.0;
    let step = |value: results::RecordedValue| {
        let to_us = value.value_us as f64;
        let step = Step { from_us, to_us, count: value.count };
        from_us = to_us;
        step
    };
    histogram.recorded().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_what_changes_figures() {
        let yaml = "name: a\nmodes:\n- none\nload:\n  rate:\n  - 500\n  connections: 4\nrepeats: 5\nseed: 7\nproxy:\n  workers: 2\npublished:\n- source: x\n  differs: y\n";
        assert_eq!(settings(yaml), ["load:", "load: connections: 4", "proxy:", "proxy: workers: 2"]);
    }

    #[test]
    fn load_of_streams_has_the_times_of_its_events() {
        let times = |us: u64| {
            let mut times = LatencyHistogram::new();
            (0..2000).for_each(|_| times.record(std::time::Duration::from_micros(us)));
            times.summary()
        };
        let mut result = LoadResult {
            response_time_us: times(900_000),
            service_time_us: times(900_000),
            ..LoadResult::default()
        };
        result.verdict.valid = true;
        let figures = |result: &LoadResult| of_load("load.json", result).run.figures;
        let value = |figures: &[HistoryFigure], key: Metric| {
            figures.iter().find(|figure| figure.key == key).map(|figure| figure.estimate.estimate)
        };
        assert_eq!(value(&figures(&result), Metric::FirstEventP50Us), None);
        result.first_byte_us = Some(times(40_000));
        result.first_event_us = Some(times(50_000));
        result.event_gap_us = Some(times(20_000));
        let found = figures(&result);
        let [byte, first, gap, whole] = [
            Metric::FirstByteP50Us,
            Metric::FirstEventP99Us,
            Metric::EventGapP99Us,
            Metric::ResponseTimeP50Us,
        ]
        .map(|key| value(&found, key).expect("it is recorded"));
        assert!(byte < first && first < whole && gap < first, "{byte} {first} {gap} {whole}");
    }

    #[test]
    fn foreign_result_keeps_its_clock_and_limits() {
        let text = include_bytes!("../../../../fuzz/corpus/foreign_result/fortio");
        let recorded = of_foreign("fortio.json", &results::foreign::read(text).unwrap());
        assert_eq!(recorded.failures, Vec::<String>::new());
        let keys: Vec<Metric> = recorded.run.figures.iter().map(|figure| figure.key).collect();
        assert!(
            keys.contains(&Metric::ServiceTimeP99Us) && !keys.contains(&Metric::ResponseTimeP99Us),
            "{keys:?}"
        );
        assert!(!keys.contains(&Metric::RateCompleted), "an offered rate is no result");
        let median =
            recorded.run.figures.iter().find(|figure| figure.key == Metric::ServiceTimeP50Us).unwrap();
        assert!(median.estimate.low.unwrap() <= 640.0 && median.estimate.high.unwrap() >= 640.0);
        assert!(!recorded.run.has_modes());
        let summary = include_bytes!("../../../../fuzz/corpus/foreign_result/k6-summary-export");
        let recorded = of_foreign("k6.json", &results::foreign::read(summary).unwrap());
        assert!(
            recorded.run.figures.iter().all(|figure| figure.estimate.low.is_none()),
            "no false precision"
        );
    }

    #[test]
    fn figures_of_a_load_that_failed_or_fell_short_are_no_result() {
        let text = include_bytes!("../../../../fuzz/corpus/foreign_result/fortio");
        let good = results::foreign::read(text).unwrap();
        let failures = |result: ForeignResult| of_foreign("fortio.json", &result).failures;
        let answered = good.answered.unwrap();
        let refused = ForeignResult { errors: answered, ..good.clone() };
        assert!(failures(refused)[0].contains("requests failed"));
        let lost = ForeignResult { failed: answered / 50, ..good.clone() };
        assert!(failures(lost)[0].contains("requests failed"));
        let short = ForeignResult { offered: good.rate_completed.map(|rate| 2.0 * rate), ..good.clone() };
        assert!(failures(short)[0].contains("requests/s were answered"));
        assert_eq!(failures(good), Vec::<String>::new());
    }

    #[test]
    fn percentiles_with_few_requests_beyond_are_left_out() {
        let text = include_bytes!("../../../../fuzz/corpus/foreign_result/k6-lines");
        let recorded = of_foreign("k6.json", &results::foreign::read(text).unwrap());
        assert!(
            recorded.run.limits.iter().any(|limit| limit.contains("p99 is left out")),
            "{:?}",
            recorded.run.limits
        );
    }
}
