//! Which figures can be trusted: saturation, objective, path, excluded trials, and figures that the run is
//! too short for.

use super::run::Run;
use crate::copies::grouped;
use crate::objective::{highest_of_drivers, is_within};
use crate::summary::distribution::is_saturated;
use crate::trials::{are_enough, events_beyond, is_excluded, reason_kind};
use results::finding::{
    About, Decisive, DriversObjective, Empty, Event, ExcludedTrials, Judged, ObjectiveOutcome, OfCell,
    PathCheck, PublishedCheck, Trials, UnavailableModeReason, Value,
};
use results::{
    Cell, Clock, DriverObjective, DriverSummary, Figure, Finding, FindingVerdict, LoadResult, Metric, Mode,
    Percentiles, PublishedFigure, TrialRecord, UnavailableMode,
};
use std::collections::BTreeMap;

/// Cells that did not keep up in some trials, with the rate that these trials completed.
pub(super) fn saturation(run: &Run<'_>) -> Vec<Finding> {
    let of_cell = |cell: &Cell| {
        let trials = run.trials.of(cell.key());
        // If another reason comes first, such as another process that took the CPU, it may be why the target
        // did not keep up.
        let saturated: Vec<&TrialRecord> =
            trials.iter().copied().filter(|trial| is_saturated(trial)).collect();
        let completed = saturated.iter().filter_map(|trial| Some(trial.result.as_ref()?.rate.completed));
        let completed: Vec<f64> = completed.collect();
        let mean = completed.iter().sum::<f64>() / completed.len() as f64;
        let completed = Value { figure: Metric::RateCompleted, value: mean };
        let figure = Some(completed).filter(|rate| rate.value.is_finite());
        let content = Judged { figure, verdict: FindingVerdict::Shown };
        let trials = Trials { n: saturated.len(), of: trials.len() };
        (!saturated.is_empty()).then(|| OfCell { trials, ..OfCell::new(cell, content) })
    };
    run.summary.cells.iter().filter_map(of_cell).map(Finding::Saturation).collect()
}

/// Whether each cell met the objective, with the first figure that did not.
pub(super) fn objective(run: &Run<'_>) -> Vec<Finding> {
    let objective = &run.experiment.objective;
    let of_cell = |cell: &Cell| {
        let outcome = cell.objective?;
        let too_many_errors = objective.errors.is_some_and(|bound| cell.errors > bound);
        let errors = Decisive { figure: Metric::Errors, value: Some(cell.errors), estimate: None };
        let undecided = objective.times().find(|(metric, bound)| !is_within(cell, *metric, *bound));
        let decisive = match undecided {
            _ if outcome == DriverObjective::Met => None,
            None => Some(errors).filter(|_| too_many_errors),
            Some((metric, _)) => Some(time(metric, metric.clock().and_then(|clock| cell.times(clock)))),
        };
        let found = OfCell::new(cell, ObjectiveOutcome { outcome, verdict: reported(outcome), decisive });
        Some(match decisive.and_then(|decisive| decisive.estimate) {
            Some(time) => found.resting_on(&time),
            None => found,
        })
    };
    run.summary.cells.iter().filter_map(of_cell).map(Finding::Objective).collect()
}

/// Cells with several drivers: those that missed the objective or are not shown to meet it, judged by their
/// slowest driver.
pub(super) fn driver_objectives(run: &Run<'_>) -> Vec<Finding> {
    let objective = &run.experiment.objective;
    let figure = highest_of_drivers(objective);
    let of_outcome = |cell: &Cell, outcome: DriverObjective| {
        let drivers: Vec<&DriverSummary> =
            cell.drivers.iter().filter(|driver| driver.objective == Some(outcome)).collect();
        let times = |driver: &DriverSummary| driver.response_time_us.and_then(|times| times.figure(figure));
        let slowness = |driver: &DriverSummary| times(driver).map_or(f64::INFINITY, |time| time.estimate);
        let slowest = drivers.iter().max_by(|one, other| slowness(one).total_cmp(&slowness(other)))?;
        let content = DriversObjective {
            outcome,
            driver: slowest.name.clone(),
            candidates: cell.drivers.len(),
            verdict: reported(outcome),
            decisive: time(Clock::ResponseTime.metric(figure)?, slowest.response_time_us.as_ref()),
        };
        let trials = Trials { n: drivers.len(), of: cell.drivers.len() };
        Some(OfCell { trials, ..OfCell::new(cell, content) })
    };
    let cells = run.summary.cells.iter().filter(|cell| cell.drivers.len() > 1);
    let outcomes = [DriverObjective::Missed, DriverObjective::NotShown];
    let pairs = cells.flat_map(|cell| outcomes.map(|outcome| (cell, outcome)));
    pairs.filter_map(|(cell, outcome)| of_outcome(cell, outcome)).map(Finding::DriverObjective).collect()
}

fn reported(outcome: DriverObjective) -> FindingVerdict {
    if outcome == DriverObjective::NotShown { FindingVerdict::NotShown } else { FindingVerdict::Shown }
}

/// A time; without a value if there is none.
fn time(metric: Metric, times: Option<&Percentiles>) -> Decisive {
    let estimate = times.and_then(|times| times.figure(metric.spoiled_by()));
    Decisive { figure: metric, value: estimate.map(|time| time.estimate), estimate }
}

/// What the proxies' own counters prove about the path, by mode.
pub(super) fn paths(run: &Run<'_>) -> Vec<Finding> {
    let of_mode = |mode: Mode| {
        let cells: Vec<&Cell> = run.measured(mode).collect();
        let first = cells.first().filter(|cell| !cell.path.proxies.is_empty())?;
        let trials = |cells: &mut dyn Iterator<Item = &&Cell>| cells.map(|cell| cell.valid).sum();
        let is_proven = cells.iter().all(|cell| cell.path.proven);
        Some(PathCheck {
            mode,
            proxies: first.path.proxies.len(),
            figure: if counts_connections(run, mode) { Metric::Connections } else { Metric::Requests },
            verdict: if is_proven { FindingVerdict::Shown } else { FindingVerdict::NotShown },
            trials: Trials {
                n: trials(&mut cells.iter().filter(|cell| cell.path.proven)),
                of: trials(&mut cells.iter()),
            },
        })
    };
    run.modes_with_proxies().into_iter().filter_map(of_mode).map(Finding::Path).collect()
}

/// True if the proxies of a mode forward connections as opaque TCP.
fn counts_connections(run: &Run<'_>, mode: Mode) -> bool {
    let trials = run.trials.all().iter().filter(|trial| trial.mode == mode);
    trials.flat_map(|trial| &trial.path.proxies).any(|proxy| proxy.streams.is_some())
}

/// Modes that could not run here; modes that lack the same prerequisite are adjacent.
pub(super) fn unavailable_modes(run: &Run<'_>) -> Vec<Finding> {
    let mut modes: Vec<&UnavailableMode> = run.summary.host.refused_modes.iter().collect();
    let lacks = |mode: &UnavailableMode| (mode.reason.clone(), mode.hint.clone());
    let all = modes.clone();
    modes.sort_by_key(|mode| all.iter().position(|other| lacks(other) == lacks(mode)));
    let content = |unavailable: &UnavailableMode| UnavailableModeReason {
        mode: unavailable.mode,
        factors: unavailable.factors.clone(),
        reason: unavailable.reason.clone(),
    };
    modes.into_iter().map(content).map(Finding::UnavailableMode).collect()
}

/// A run that was cut short, and trials that enter no estimate, with the kind of their first reason.
pub(super) fn excluded(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (planned, recorded) = (run.summary.trials_planned, run.summary.places_recorded());
    if recorded < planned {
        findings.push(Finding::CutShort(Trials { n: recorded, of: planned }));
    }
    let mut reasons: BTreeMap<&str, Vec<&TrialRecord>> = BTreeMap::new();
    for trial in run.trials.all().iter().filter(|trial| is_excluded(trial)) {
        reasons.entry(reason_kind(trial)).or_default().push(trial);
    }
    for (reason, trials) in reasons {
        findings.extend(counted_by_cell(run, trials.into_iter()).map(|OfCell { place, trials, .. }| {
            let content = ExcludedTrials { reason: reason.to_owned() };
            Finding::ExcludedTrials(OfCell { place, trials, content })
        }));
    }
    findings
}

/// Each cell with at least one of these trials: their number, of all its trials.
pub(super) fn counted_by_cell<'a>(
    run: &Run<'a>,
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> impl Iterator<Item = OfCell<Empty>> {
    let all = run.trials;
    grouped(trials, TrialRecord::cell).into_iter().map(move |(cell, of_cell)| OfCell {
        place: cell.into(),
        trials: Trials { n: of_cell.len(), of: all.of(cell).len() },
        content: Empty {},
    })
}

/// Figures that the run is too short for.
pub(super) fn limits(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, percentile) in
        [(Metric::ResponseTimeP99Us, Figure::P99), (Metric::ResponseTimeP99_9Us, Figure::P99_9)]
    {
        let results = || run.summary.cells.iter().flat_map(|cell| run.trials.valid_results(cell.key()));
        let events = results().filter_map(|result| events_beyond(result, Clock::ResponseTime, percentile));
        let fewest = events.fold(f64::INFINITY, f64::min);
        if !are_enough(fewest) {
            let are_episodes = |result: &LoadResult| {
                result.episodes.get(percentile.name()).is_some_and(|episodes| *episodes as f64 <= fewest)
            };
            let event = if results().any(are_episodes) { Event::Episodes } else { Event::Requests };
            let fewest = Value { figure: name, value: fewest.floor() };
            findings.push(Finding::FewSamples(About { subject: event, figure: fewest }));
        }
    }
    let singles = run.summary.cells.iter().filter(|cell| cell.valid == 1 && cell.mode != Mode::None);
    findings.extend(singles.map(|cell| Finding::SingleTrial(OfCell::new(cell, Empty {}))));
    findings
}

/// Agreement with each published figure.
pub(super) fn published(run: &Run<'_>) -> Vec<Finding> {
    let content = |figure: &PublishedFigure| PublishedCheck {
        subject: figure.what.clone(),
        value: figure.ratio,
        estimate: figure.measured_estimate,
        n: figure.measured_estimate.map(|measured| measured.n),
        verdict: match figure.agrees {
            Some(true) => FindingVerdict::Shown,
            Some(false) => FindingVerdict::NotShown,
            None => FindingVerdict::CannotTell,
        },
    };
    run.summary.published.iter().map(content).map(Finding::Published).collect()
}
