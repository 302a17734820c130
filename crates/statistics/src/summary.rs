//! From trials to cells: estimates with intervals for every mode × factors × load.
//!
//! Only valid trials enter estimates; every trial enters the counts and the errors. What the proxies hold is in
//! `holdings.rs`, how modes compare in `comparison.rs`, what rises with a factor in `factors.rs`, what components of a role use together in `totals.rs`.

mod comparison;
mod drivers;
mod factors;
mod holdings;
mod services;
mod totals;

use crate::curve::{is_valid, valid_results};
use crate::retakes::kind_of;
use crate::{findings, interval, published, retakes};
use experiment::plan::{PlannedCell, cells, most_retakes};
use experiment::schema::{
    Cell, CellPath, ComponentSummary, ComponentUsage, Conditions, Estimate, HistogramSummary, HopProof, Host,
    LoadPoint, LoadResult, Percentiles, ProxyHoldings, RequestCounts, Role, SUMMARY_SCHEMA, Summary,
    TrialRecord,
};
use experiment::{Experiment, Mode, Objective};
use std::collections::BTreeMap;

/// The verdict of a cell that may be used.
pub const VALID: &str = "valid";
/// The verdict of a cell that no trial was recorded of.
pub const NOT_MEASURED: &str = "not-measured";

/// What a run's trials say together, once it is settled which takes count ([`retakes::settle`]). `planned` is the number of
/// trials of the plan; a run that was cut short has fewer, and trials that were taken again come on top.
#[must_use]
pub fn summarize(
    experiment: &Experiment,
    seed: u64,
    planned: usize,
    host: &Host,
    trials: &[TrialRecord],
) -> Summary {
    let keys = cell_keys(experiment, trials);
    let mut conditions: Vec<Conditions<'_>> = keys.iter().map(PlannedCell::conditions).collect();
    conditions.dedup();
    let mut modes: Vec<Mode> = keys.iter().map(|cell| cell.mode).collect();
    modes.sort_unstable();
    modes.dedup();
    let cells = keys.iter().map(|key| cell(key, &experiment.objective, trials)).collect();
    let factor_effects = factors::effects(experiment, &conditions, &modes, trials);
    let mut summary = Summary {
        schema: SUMMARY_SCHEMA.to_owned(),
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        seed,
        trials_planned: planned,
        trials_recorded: trials.len(),
        retakes: retakes::summary(experiment.retakes, most_retakes(planned, experiment.retakes), trials),
        host: host.clone(),
        cells,
        findings: Vec::new(),
        published: Vec::new(),
        comparisons: comparison::comparisons(&conditions, &modes, trials),
        size_effects: factors::size_effects(&factor_effects),
        factor_effects,
    };
    summary.published = published::figures(experiment, &summary);
    summary.findings = findings::findings(experiment, &summary, trials);
    summary
}

/// Every cell of the experiment and of the trials: by factors, the most expensive to change first, by load, then by mode in
/// the order of [`Mode::ALL`].
fn cell_keys(experiment: &Experiment, trials: &[TrialRecord]) -> Vec<PlannedCell> {
    let mut keys = cells(experiment);
    for trial in trials {
        if !keys.iter().any(|known| known.key() == trial.cell()) {
            let (factors, load) = (trial.factors.clone(), trial.load.clone());
            keys.push(PlannedCell { mode: trial.mode, factors, load });
        }
    }
    let level = |load: &LoadPoint| load.rate.or(load.clients.map(|clients| clients as f64)).unwrap_or(0.0);
    keys.sort_by(|one, other| {
        factors::order(experiment, &one.factors, &other.factors)
            .then(level(&one.load).total_cmp(&level(&other.load)))
            .then(one.mode.cmp(&other.mode))
    });
    keys
}

fn cell(key: &PlannedCell, objective: &Objective, trials: &[TrialRecord]) -> Cell {
    let mode = key.mode;
    let all: Vec<&TrialRecord> = trials.iter().filter(|trial| trial.cell() == key.key()).collect();
    let valid: Vec<&TrialRecord> = all.iter().copied().filter(|trial| is_valid(trial)).collect();
    let retakes = all.iter().filter(|trial| retakes::is_another_take(trial, trials)).count();
    let places = all.len() - retakes;
    let results: Vec<&LoadResult> = valid_results(trials, key.key()).collect();
    Cell {
        mode,
        factors: key.factors.clone(),
        load: key.load.clone(),
        trials: all.len(),
        valid: valid.len(),
        retakes,
        verdict: verdict(&all, valid.len(), places),
        response_time_us: percentiles(&results),
        added_us: mode
            .floor()
            .and_then(|floor| comparison::response_time(mode, floor, key.conditions(), trials)),
        rate_completed: estimate(results.iter().map(|result| result.rate.completed)),
        errors: error_fraction(all.iter().filter_map(|trial| Some(&trial.result.as_ref()?.requests))),
        drivers: drivers::drivers(objective, &all, places),
        services: services::services(&all),
        components: components(&valid),
        totals: totals::totals(&valid),
        path: path(&valid, &all),
    }
}

/// `valid` where more than half of the trials are, those that were taken again counted once; else the commonest kind of
/// reason.
fn verdict(trials: &[&TrialRecord], valid: usize, places: usize) -> String {
    if trials.is_empty() {
        return NOT_MEASURED.to_owned();
    }
    let invalid = trials.iter().filter(|trial| !is_valid(trial));
    commonest_kind(invalid.map(|trial| reason_kind(trial)), valid, places)
}

/// `valid` if more than half of `places` are, else the commonest of these kinds of reasons.
fn commonest_kind<'a>(kinds: impl Iterator<Item = &'a str>, valid: usize, places: usize) -> String {
    if valid * 2 > places {
        return VALID.to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in kinds {
        *counts.entry(kind).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map_or(VALID, |(kind, _)| kind).to_owned()
}

/// The kind of the first reason why a trial is not valid: what stands before its colon.
pub(crate) fn reason_kind(trial: &TrialRecord) -> &str {
    match trial.verdict.reasons.first() {
        Some(reason) => kind_of(reason),
        None if trial.result.is_none() => "no result",
        None => "no responses",
    }
}

/// The least difference that a histogram tells apart at a value: 1 µs, and a bucket of 3 significant digits above.
fn resolution_us(value_us: f64) -> f64 {
    (value_us / 1024.0).max(0.5)
}

fn percentiles(results: &[&LoadResult]) -> Option<Percentiles> {
    let estimate = |read: fn(&HistogramSummary) -> f64| {
        let values: Vec<f64> = results.iter().map(|result| read(&result.response_time_us)).collect();
        let greatest = values.iter().copied().fold(0.0, f64::max);
        interval::mean(&values, resolution_us(greatest)).map(not_below_zero)
    };
    Some(Percentiles {
        mean: estimate(|histogram| histogram.mean),
        p50: estimate(|histogram| histogram.p50)?,
        p90: estimate(|histogram| histogram.p90)?,
        p95: estimate(|histogram| histogram.p95),
        p99: estimate(|histogram| histogram.p99)?,
        p99_9: estimate(|histogram| histogram.p99_9)?,
    })
}

pub(crate) fn estimate(values: impl Iterator<Item = f64>) -> Option<Estimate> {
    interval::mean(&values.collect::<Vec<_>>(), 0.0).map(not_below_zero)
}

/// What is counted or timed is never negative: an interval of it ends at zero, and holds the truth as often as before.
fn not_below_zero(estimate: Estimate) -> Estimate {
    Estimate { low: estimate.low.map(|low| low.max(0.0)), ..estimate }
}

/// Over all trials: an invalid trial's errors are errors too.
fn error_fraction<'a>(counts: impl Iterator<Item = &'a RequestCounts>) -> f64 {
    let counts: Vec<&RequestCounts> = counts.collect();
    let sent: u64 = counts.iter().map(|requests| requests.sent).sum();
    let wrong: u64 = counts.iter().map(|requests| requests.failed + requests.error_statuses()).sum();
    match sent {
        0 if counts.iter().any(|requests| !requests.errors.is_empty()) => 1.0,
        0 => 0.0,
        _ => wrong as f64 / sent as f64,
    }
}

/// What each component used, in the order in which the trials list them.
fn components(valid: &[&TrialRecord]) -> Vec<ComponentSummary> {
    let mut keys: Vec<(&str, Role)> = Vec::new();
    for usage in valid.iter().flat_map(|trial| &trial.components) {
        if !keys.contains(&(usage.name.as_str(), usage.role)) {
            keys.push((&usage.name, usage.role));
        }
    }
    keys.into_iter().filter_map(|(name, role)| component(name, role, valid)).collect()
}

fn component(name: &str, role: Role, valid: &[&TrialRecord]) -> Option<ComponentSummary> {
    let usages: Vec<(&ComponentUsage, f64)> = valid
        .iter()
        .filter_map(|trial| {
            let usage = trial.components.iter().find(|usage| usage.name == name && usage.role == role)?;
            Some((usage, trial.result.as_ref()?.rate.completed))
        })
        .collect();
    let each = |read: &dyn Fn(&ComponentUsage, f64) -> Option<f64>| {
        estimate(usages.iter().filter_map(|(usage, rate)| read(usage, *rate)))
    };
    let memory = |read: &dyn Fn(&ComponentUsage) -> Option<u64>| {
        each(&|usage, _| read(usage).map(|bytes| bytes as f64))
    };
    let held: Vec<&ProxyHoldings> = usages.iter().filter_map(|(usage, _)| usage.holdings.as_ref()).collect();
    let a_second =
        |usage: &ComponentUsage, bytes: u64| (usage.window_s > 0.0).then(|| bytes as f64 / usage.window_s);
    Some(ComponentSummary {
        name: name.to_owned(),
        role,
        cpu_cores: each(&|usage, _| Some(usage.cpu_cores()))?,
        cpu_cores_per_1000_rps: each(&|usage, rate| (rate > 0.0).then(|| usage.cpu_cores() / rate * 1000.0))
            .unwrap_or_default(),
        memory_bytes: memory(&ComponentUsage::memory_bytes),
        memory_resident_bytes: memory(&|usage| {
            Some(usage.memory_resident_bytes).filter(|bytes| *bytes > 0 && usage.role != Role::Kernel)
        }),
        memory_working_set_bytes: memory(&|usage| usage.memory_working_set_bytes),
        memory_anonymous_bytes: memory(&|usage| usage.memory_anonymous_bytes),
        memory_before_load_bytes: memory(&|usage| usage.memory_before_load_bytes),
        memory_after_load_bytes: memory(&|usage| usage.memory_after_load_bytes),
        memory_anonymous_before_load_bytes: memory(&|usage| usage.memory_anonymous_before_load_bytes),
        memory_anonymous_after_load_bytes: memory(&|usage| usage.memory_anonymous_after_load_bytes),
        heap_before_load: holdings::heap(&held, |holdings| holdings.heap_before_load),
        heap_after_load: holdings::heap(&held, |holdings| holdings.heap_after_load),
        configuration: holdings::configuration(&held),
        configured_in_s: estimate(
            valid.iter().filter_map(|trial| trial.push.as_ref()?.in_force_s.get(name).copied()),
        ),
        unread: holdings::unread(&held),
        network_bytes_received_s: each(&|usage, _| a_second(usage, usage.network?.received_bytes)),
        network_bytes_sent_s: each(&|usage, _| a_second(usage, usage.network?.sent_bytes)),
    })
}

/// Proof over the valid trials, or over all that have a result where none is valid: a path may be proven though the
/// figures are of no use. The names of the proxies come from any trial that lists them.
fn path(valid: &[&TrialRecord], all: &[&TrialRecord]) -> CellPath {
    let proxies = valid
        .iter()
        .chain(all)
        .find(|trial| !trial.path.proxies.is_empty())
        .map(|trial| trial.path.proxies.iter().map(|proxy| proxy.name.clone()).collect())
        .unwrap_or_default();
    let measured: Vec<&TrialRecord> = all.iter().copied().filter(|trial| trial.result.is_some()).collect();
    let judged = if valid.is_empty() { &measured } else { valid };
    let mut claims =
        judged.iter().flat_map(|trial| &trial.path.proxies).filter(|proxy| proxy.tls_expected).peekable();
    let mtls = claims.peek().is_some().then(|| claims.all(|proxy| proxy.tls_handshakes > 0));
    CellPath {
        proven: !judged.is_empty() && judged.iter().all(|trial| trial.path.proven),
        proxies,
        mtls,
        hops: HopProof::of_all(judged.iter().map(|trial| trial.path.hops.as_slice())),
    }
}

#[cfg(test)]
mod driver_tests;
