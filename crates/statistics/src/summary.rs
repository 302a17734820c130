//! From trials to cells: estimates with intervals for every mode × factors × load.
//!
//! Each figure is estimated over the trials in which it is usable; every trial enters the counts and the
//! errors. Read [`estimates`] first. [`components`], [`holdings`] and [`totals`] are usage. [`drivers`],
//! [`services`], [`gateways`] and [`edges`] cover each driver, service, gateway and call between services. [`disturbed`] has what
//! noise of the machine keeps out of the estimates.
//! [`streams`] are those of events. [`comparison`] compares modes, [`pairs`] finds their cells under the same conditions. [`factors`] relates figures to
//! factors with numeric values, [`word_factors`] compares the values of other factors, [`corners`] all factors at their last
//! values with all at their first. [`versions`] records the programs that cells ran.

mod comparison;
mod components;
mod corners;
pub(crate) mod distribution;
mod disturbed;
mod drivers;
mod edges;
mod errors;
mod estimates;
mod factors;
mod fleet;
mod footprint;
mod gateways;
mod pairs;
mod readings;
pub(crate) mod reservation;
mod services;
mod spoiled;
mod streams;
mod tables;
mod totals;
mod verdicts;
mod versions;
mod word_factors;

pub(crate) use edges::namespace;
pub use estimates::VALID;
pub(crate) use estimates::resolution_us;

use crate::figure_table::Difference;
use crate::findings::resources::CpuScaling;
use crate::trials::{
    ERRORS, SATURATED, TrialsByCell, censored, is_excluded, kind_of, reason_kind, shows_saturation, usable,
};
use crate::{control_plane, findings, objective, published, retakes, scaling};
use components::components;
use errors::ErrorShare;
use estimates::commonest_kind;
use experiment::Experiment;
use experiment::plan::{cells, max_reruns, topology_of};
use results::{
    Cell, CellKey, CellPath, Clock, Conditions, CostTerm, Estimate, Figure, FindingVerdict, HopProof, Host,
    Metric, Mode, ModeComparison, OwnedCellKey, ProxySetup, Role, SUMMARY_SCHEMA, StatedFinding, Summary,
    TrialOutcome, TrialRecord,
};
use std::collections::{BTreeMap, HashSet};
use tables::{Subject, Tables};
use verdicts::{Statement, Subjects, Tested};

/// Verdict of a cell without a recorded trial.
pub const NOT_MEASURED: &str = "not-measured";

/// Summarises the trials of a run. `planned` is the number of trials in the plan: a run that was cut short
/// has fewer, and reruns come on top.
#[must_use]
pub fn summarize(
    experiment: &Experiment,
    seed: u64,
    planned: usize,
    host: &Host,
    trials: &[TrialRecord],
) -> Summary {
    let trials = &TrialsByCell::new(trials);
    let keys = cell_keys(experiment, trials.all());
    let mut conditions: Vec<Conditions<'_>> = keys.iter().map(OwnedCellKey::conditions).collect();
    conditions.dedup();
    let mut modes: Vec<Mode> = keys.iter().map(|cell| cell.mode).collect();
    modes.sort_unstable();
    modes.dedup();
    let tables = Tables::new(&keys, trials);
    let (mut comparisons, mut tested) = comparison::comparisons(&keys, &modes, &tables);
    let (mut factor_effects, slopes) =
        factors::effects(experiment, &conditions, &modes, trials.all(), &tables);
    tested.extend(slopes);
    let (mut factor_differences, between_values) = word_factors::differences(experiment, &keys, &tables);
    tested.extend(between_values);
    let (mut corner_differences, between_corners) = corners::differences(experiment, &keys, &tables);
    tested.extend(between_corners);
    let mut greatest = findings::graph::greatest(&keys, trials);
    let greatest_tested = greatest.iter().enumerate();
    tested
        .extend(greatest_tested.map(|(index, one)| Tested::new(Statement::Greatest(index), one.difference)));
    let (mut control_plane_model, chances) =
        control_plane::model_with_chances(experiment, trials.all()).unzip();
    let costs = control_plane_model
        .as_mut()
        .map_or([const { None }; 4], |model| control_plane::first_slopes(&mut model.main));
    tested.extend(costs_tested(&costs, chances.unwrap_or_default()));
    let mut cpu_scalings = cpu_scalings(&keys, &modes, &tables);
    let scalings_tested = cpu_scalings.iter().enumerate();
    tested.extend(
        scalings_tested.map(|(index, one)| Tested::new(Statement::CpuScaling(index), one.difference)),
    );
    let mut subjects = Subjects {
        comparisons: &mut comparisons,
        effects: &mut factor_effects,
        values: &mut factor_differences,
        corners: &mut corner_differences,
        greatest: &mut greatest,
        costs,
        cpu_scalings: &mut cpu_scalings,
    };
    let tests = verdicts::check(&tested, &mut subjects);
    let mut cells: Vec<Cell> =
        keys.iter().map(|key| cell(key, experiment, trials, &tables, &comparisons)).collect();
    versions::note_differing(&mut cells, trials);
    let mut summary = Summary {
        schema: SUMMARY_SCHEMA.to_owned(),
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        seed,
        trials_planned: planned,
        trials_recorded: trials.all().len(),
        retakes: retakes::summary(experiment.retakes, max_reruns(planned, experiment.retakes), trials),
        noise_accepted: None,
        host: host.clone(),
        cells,
        findings: Vec::new(),
        published: Vec::new(),
        comparisons,
        factor_effects,
        factor_differences,
        corner_differences,
        scaling: scaling::scaling(experiment, &keys, trials),
        control_plane_model,
        tests,
    };
    summary.published = published::figures(experiment, &summary);
    summary.findings = findings::findings(experiment, &summary, trials, &greatest, &cpu_scalings)
        .into_iter()
        .map(StatedFinding::from)
        .collect();
    summary
}

fn costs_tested(
    slopes: &[Option<&mut CostTerm>; 4],
    chances: [Option<f64>; 4],
) -> impl Iterator<Item = Tested> {
    let slopes = slopes.each_ref().map(|slope| slope.as_ref().map(|slope| slope.coefficient));
    let tested = |(index, (estimate, chance)): (usize, (Option<Estimate>, Option<f64>))| {
        let estimate = estimate?;
        let difference = Difference::new(estimate, chance, estimate.n as f64 - 1.0);
        Some(Tested::new(Statement::Cost(index), difference))
    };
    slopes.into_iter().zip(chances).enumerate().filter_map(tested)
}

/// By mode the proxies' CPU at the highest rate against the lowest, with the first value of each factor.
fn cpu_scalings(keys: &[OwnedCellKey], modes: &[Mode], tables: &Tables<'_>) -> Vec<CpuScaling> {
    const PROXIES: Subject<'_> = Subject::Role(Role::Proxy);
    let of_mode = |mode: &Mode| {
        let has_cpu = |cell: &&OwnedCellKey| tables.mean(PROXIES, Metric::CpuCores, cell.key()).is_some();
        let mut cells =
            keys.iter().filter(|cell| cell.mode == *mode && cell.load.rate.is_some()).filter(has_cpu);
        let lowest = cells.next()?;
        let highest = cells.rfind(|cell| cell.factors == lowest.factors)?;
        let difference = tables.change(PROXIES, Metric::CpuCores, highest.key(), lowest.key())?;
        let (lowest, highest) = (lowest.clone(), highest.clone());
        Some(CpuScaling { lowest, highest, difference, verdict: FindingVerdict::CannotTell })
    };
    modes.iter().filter_map(of_mode).collect()
}

/// Every cell of the experiment and of the trials. Sorted by factors (the most expensive to change first),
/// then by load, then by mode in the order of [`Mode::ALL`].
fn cell_keys(experiment: &Experiment, trials: &[TrialRecord]) -> Vec<OwnedCellKey> {
    let mut keys = cells(experiment);
    let mut known: HashSet<CellKey<'_>> = keys.iter().map(OwnedCellKey::key).collect();
    let others = trials.iter().map(TrialRecord::cell).filter(|cell| known.insert(*cell));
    let others: Vec<OwnedCellKey> = others.map(OwnedCellKey::from).collect();
    // Some runs measured a cell once per value of factors that cannot touch its mode.
    let is_of_factors =
        |cell: &&OwnedCellKey| cell.factors.keys().all(|key| experiment.factor(key).is_some());
    let apart: Vec<&OwnedCellKey> = others.iter().filter(is_of_factors).collect();
    let was_apart = |key: &OwnedCellKey| {
        let is_part = |one: &&OwnedCellKey| one.mode == key.mode && key.conditions().covers(one.conditions());
        apart.iter().any(is_part) && !trials.iter().any(|trial| trial.cell() == key.key())
    };
    keys.retain(|key| !was_apart(key));
    keys.extend(others);
    let level = |key: &OwnedCellKey| key.load.level().unwrap_or(0.0);
    keys.sort_by(|one, other| {
        factors::order(experiment, &one.factors, &other.factors)
            .then(level(one).total_cmp(&level(other)))
            .then(one.mode.cmp(&other.mode))
    });
    keys
}

fn cell(
    key: &OwnedCellKey,
    experiment: &Experiment,
    trials: &TrialsByCell<'_>,
    tables: &Tables<'_>,
    comparisons: &[ModeComparison],
) -> Cell {
    let mode = key.mode;
    let all = trials.of(key.key());
    let valid = usable(all, Figure::P50);
    let retakes = all.iter().filter(|trial| retakes::is_another_take(trial, all)).count();
    let places = all.len() - retakes;
    let verdict = verdict(all, valid.len(), places);
    let totals = totals::totals(key.key(), tables);
    let streams = streams::streams(key.key(), all, tables, comparisons);
    let whole = drivers::Whole {
        streams: streams.as_ref(),
        response_time_us: tables.percentiles(key.key(), Clock::ResponseTime),
        rate_completed: tables.mean(Subject::Path, Metric::RateCompleted, key.key()),
    };
    let (response_time_us, rate_completed) = (whole.response_time_us, whole.rate_completed);
    let drivers = drivers::drivers(&experiment.objective, all, places, Some(whole));
    let errors = ErrorShare::new(all.iter().filter_map(|trial| Some(&trial.result.as_ref()?.requests)));
    let mut cell = Cell {
        mode,
        factors: key.factors.clone(),
        load: key.load.clone(),
        trials: all.len(),
        valid: valid.len(),
        excluded: all.iter().filter(|trial| is_excluded(trial)).count(),
        saturated_trials: saturated_trials(all),
        error_trials: error_trials(all),
        failed_trials: all.iter().filter(|trial| trial.outcome == TrialOutcome::Failed).count(),
        censored: censored(all),
        spoiled: spoiled::spoiled(all),
        disturbed: None,
        noise_accepted: 0,
        events_beyond: events_beyond(trials, key.key()),
        objective: None,
        retakes,
        response_time_us,
        service_time_us: tables.percentiles(key.key(), Clock::ServiceTime),
        distribution: distribution::distribution(&verdict, all),
        verdict,
        added_us: comparison::added_to_floor(mode, key.conditions(), comparisons),
        streams,
        rate_completed,
        errors: errors.fraction,
        errors_high: errors.high,
        drivers,
        services: services::services(all),
        edges: edges::edges(all),
        gateways: gateways::gateways(all),
        rates: gateways::rates(all),
        proxies: proxies(all),
        fleet: fleet::fleet(key.key(), all, tables),
        versions: Vec::new(),
        components: components(key.key(), all, tables, &totals),
        totals,
        reserved: topology_of(experiment, key).and_then(|topology| reservation::reservation(&topology, all)),
        path: path(&valid, all),
    };
    services::share_intervals(&mut cell.services, &cell.components, all);
    cell.objective = objective::of_cell(&experiment.objective, &cell);
    disturbed::note(&mut cell, all);
    cell
}

/// The smallest number of events in any trial at and beyond each upper percentile; empty without a valid
/// trial.
fn events_beyond(trials: &TrialsByCell<'_>, cell: CellKey<'_>) -> BTreeMap<String, u64> {
    let of_figure = |figure: Figure| {
        let events = Some(trials.events_beyond(cell, figure)).filter(|events| events.is_finite())?;
        // The fraction beyond a percentile is not exact in binary.
        Some((figure.name().to_owned(), (events + 1e-6) as u64))
    };
    [Figure::P99, Figure::P99_9, Figure::P99_99].into_iter().filter_map(of_figure).collect()
}

/// The proxy setup of these trials if all had the same; trials that never got that far have none.
fn proxies(trials: &[&TrialRecord]) -> Option<ProxySetup> {
    let mut known = trials.iter().filter_map(|trial| trial.proxies);
    let first = known.next()?;
    known.all(|other| other == first).then_some(first)
}

/// `valid` where more than half of the trials are, reruns counted once, unless some were saturated or had
/// too many errors: `saturated in 2 of 5`. Else the commonest kind of reason.
fn verdict(trials: &[&TrialRecord], valid: usize, places: usize) -> String {
    if trials.is_empty() {
        return NOT_MEASURED.to_owned();
    }
    let invalid = trials.iter().filter(|trial| is_excluded(trial));
    let kind = commonest_kind(invalid.map(|trial| reason_kind(trial)), valid, places);
    let happened = [(SATURATED, saturated_trials(trials)), (ERRORS, error_trials(trials))];
    let happened = happened.into_iter().filter(|(_, count)| *count > 0);
    let happened: Vec<String> =
        happened.map(|(kind, count)| format!("{kind} in {count} of {}", trials.len())).collect();
    if kind == VALID && !happened.is_empty() { happened.join(" and ") } else { kind }
}

/// Trials whose offered rate was not kept up.
fn saturated_trials(trials: &[&TrialRecord]) -> usize {
    trials.iter().filter(|trial| shows_saturation(&trial.verdict)).count()
}

/// Trials with too many errors.
fn error_trials(trials: &[&TrialRecord]) -> usize {
    let has_errors =
        |trial: &TrialRecord| trial.verdict.reasons.iter().any(|reason| kind_of(reason) == ERRORS);
    trials.iter().filter(|trial| has_errors(trial)).count()
}

/// Path verification over the valid trials, or over all trials with a result if none is valid: a path may be
/// proven although the figures are unusable. The names of the proxies come from any trial that lists them.
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
#[cfg(test)]
mod edge_tests;
#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod outcome_tests;
