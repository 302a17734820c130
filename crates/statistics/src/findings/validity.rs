//! Which figures can be trusted: saturation, objective, path, excluded trials, and figures that the run is
//! too short for.

use super::run::Run;
use crate::objective::is_within;
use crate::summary::distribution::is_saturated;
use crate::trials::{are_enough, events_beyond, is_valid, reason_kind};
use experiment::Objective;
use results::{
    Cell, CellKey, Clock, DriverObjective, DriverSummary, Figure, Finding, FindingKind, FindingVerdict,
    LoadResult, Metric, Mode, Percentiles, TimeFigure, TrialRecord, UnavailableMode,
};
use std::collections::{BTreeMap, HashMap};

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
        let finding = Finding::of_cell(FindingKind::Saturation, cell);
        let finding =
            if completed.is_empty() { finding } else { finding.with_value(Metric::RateCompleted, mean) };
        (!saturated.is_empty()).then_some(Finding {
            verdict: Some(FindingVerdict::Shown),
            n: Some(saturated.len()),
            of: Some(trials.len()),
            ..finding
        })
    };
    run.summary.cells.iter().filter_map(of_cell).collect()
}

/// Whether each cell met the objective, with the first figure that did not.
pub(super) fn objective(run: &Run<'_>) -> Vec<Finding> {
    let objective = &run.experiment.objective;
    let of_cell = |cell: &Cell| {
        let outcome = cell.objective?;
        let finding =
            Finding { verdict: Some(reported(outcome)), ..Finding::of_cell(FindingKind::Objective, cell) };
        let finding = finding.about(outcome.name());
        let too_many_errors = objective.errors.is_some_and(|bound| cell.errors > bound);
        Some(match undecided(objective, cell.response_time_us.as_ref(), cell.valid) {
            _ if outcome == DriverObjective::Met => finding,
            None if too_many_errors => finding.with_value(Metric::Errors, cell.errors),
            None => finding,
            Some(figure) => with_time(finding, cell.response_time_us.as_ref(), figure),
        })
    };
    run.summary.cells.iter().filter_map(of_cell).collect()
}

/// Cells with several drivers: those that missed the objective or are not shown to meet it, judged by their
/// slowest driver.
pub(super) fn driver_objectives(run: &Run<'_>) -> Vec<Finding> {
    let objective = &run.experiment.objective;
    let of_outcome = |cell: &Cell, outcome: DriverObjective| {
        let drivers: Vec<&DriverSummary> =
            cell.drivers.iter().filter(|driver| driver.objective == Some(outcome)).collect();
        let figure = objective.times().last().map_or(TimeFigure::P99, |(figure, _)| figure);
        let time = |driver: &DriverSummary| driver.response_time_us.and_then(|times| times.figure(figure));
        let slowness = |driver: &DriverSummary| time(driver).map_or(f64::INFINITY, |time| time.estimate);
        let slowest = drivers.iter().max_by(|one, other| slowness(one).total_cmp(&slowness(other)))?;
        let finding = Finding::of_cell(FindingKind::DriverObjective, cell).about(outcome.name());
        Some(Finding {
            driver: Some(slowest.name.clone()),
            candidates: Some(cell.drivers.len()),
            verdict: Some(reported(outcome)),
            n: Some(drivers.len()),
            of: Some(cell.drivers.len()),
            ..with_time(finding, slowest.response_time_us.as_ref(), figure)
        })
    };
    let cells = run.summary.cells.iter().filter(|cell| cell.drivers.len() > 1);
    let outcomes = [DriverObjective::Missed, DriverObjective::NotShown];
    cells.flat_map(|cell| outcomes.into_iter().filter_map(move |outcome| of_outcome(cell, outcome))).collect()
}

fn reported(outcome: DriverObjective) -> FindingVerdict {
    if outcome == DriverObjective::NotShown { FindingVerdict::NotShown } else { FindingVerdict::Shown }
}

/// The first figure that is not shown to be within its bound.
fn undecided(objective: &Objective, times: Option<&Percentiles>, valid: usize) -> Option<TimeFigure> {
    let is_met = |(figure, bound)| times.is_some_and(|times| is_within(times, figure, bound, valid));
    objective.times().find(|bound| !is_met(*bound)).map(|(figure, _)| figure)
}

fn with_time(finding: Finding, times: Option<&Percentiles>, figure: TimeFigure) -> Finding {
    let mut percentiles = Metric::of_clock(Clock::ResponseTime);
    let metric = percentiles.find(|metric| metric.spoiled_by() == figure.figure());
    let time = times.and_then(|times| times.figure(figure));
    match metric.zip(time) {
        Some((metric, time)) => finding.with_figure(metric, &time),
        None => Finding { figure: metric.map(Metric::into), ..finding },
    }
}

/// What the proxies' own counters prove about the path, by mode.
pub(super) fn paths(run: &Run<'_>) -> Vec<Finding> {
    let of_mode = |mode: Mode| {
        let cells: Vec<&Cell> = run.measured(mode).collect();
        let first = cells.first().filter(|cell| !cell.path.proxies.is_empty())?;
        let trials = |cells: &mut dyn Iterator<Item = &&Cell>| cells.map(|cell| cell.valid).sum();
        let is_proven = cells.iter().all(|cell| cell.path.proven);
        let counted = if counts_connections(run, mode) { Metric::Connections } else { Metric::Requests };
        Some(Finding {
            mode: Some(mode),
            candidates: Some(first.path.proxies.len()),
            figure: Some(counted.into()),
            verdict: Some(if is_proven { FindingVerdict::Shown } else { FindingVerdict::NotShown }),
            n: Some(trials(&mut cells.iter().filter(|cell| cell.path.proven))),
            of: Some(trials(&mut cells.iter())),
            ..Finding::new(FindingKind::Path)
        })
    };
    run.modes_with_proxies().into_iter().filter_map(of_mode).collect()
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
    let finding = |unavailable: &UnavailableMode| Finding {
        mode: Some(unavailable.mode),
        factors: unavailable.factors.clone(),
        ..Finding::new(FindingKind::UnavailableMode).about(&unavailable.reason)
    };
    modes.into_iter().map(finding).collect()
}

/// A run that was cut short, and trials that enter no estimate, with the kind of their first reason.
pub(super) fn excluded(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (planned, recorded) = (run.summary.trials_planned, run.summary.places_recorded());
    if recorded < planned {
        findings.push(Finding {
            n: Some(recorded),
            of: Some(planned),
            ..Finding::new(FindingKind::CutShort)
        });
    }
    let mut reasons: BTreeMap<&str, Vec<&TrialRecord>> = BTreeMap::new();
    for trial in run.trials.all().iter().filter(|trial| !is_valid(trial)) {
        reasons.entry(reason_kind(trial)).or_default().push(trial);
    }
    for (reason, trials) in reasons {
        let counted = counted_by_cell(FindingKind::ExcludedTrials, run, trials.into_iter());
        findings.extend(counted.into_iter().map(|finding| finding.about(reason)));
    }
    findings
}

/// One finding per cell with at least one of these trials: `n` of them, of all its trials.
pub(super) fn counted_by_cell<'a>(
    kind: FindingKind,
    run: &Run<'_>,
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> Vec<Finding> {
    let mut cells: Vec<(CellKey<'_>, usize)> = Vec::new();
    let mut positions: HashMap<CellKey<'_>, usize> = HashMap::new();
    for trial in trials {
        let position = *positions.entry(trial.cell()).or_insert_with(|| {
            cells.push((trial.cell(), 0));
            cells.len() - 1
        });
        cells[position].1 += 1;
    }
    let finding = |(cell, count): (CellKey<'_>, usize)| Finding {
        mode: Some(cell.mode),
        n: Some(count),
        of: Some(run.trials.of(cell).len()),
        ..Finding::new(kind).at(cell.conditions)
    };
    cells.into_iter().map(finding).collect()
}

/// Figures that the run is too short for.
pub(super) fn limits(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, percentile) in
        [(Metric::ResponseTimeP99Us, Figure::P99), (Metric::ResponseTimeP99_9Us, Figure::P99_9)]
    {
        let results = || run.summary.cells.iter().flat_map(|cell| run.trials.valid_results(cell.key()));
        let events = results().filter_map(|result| events_beyond(result, percentile));
        let fewest = events.fold(f64::INFINITY, f64::min);
        if !are_enough(fewest) {
            let are_episodes = |result: &LoadResult| {
                result.episodes.get(percentile.name()).is_some_and(|episodes| *episodes as f64 <= fewest)
            };
            let what = if results().any(are_episodes) { "episodes" } else { "requests" };
            let finding = Finding::new(FindingKind::FewSamples).about(what);
            findings.push(finding.with_value(name, fewest.floor()));
        }
    }
    let singles = run.summary.cells.iter().filter(|cell| cell.valid == 1 && cell.mode != Mode::None);
    findings.extend(singles.map(|cell| Finding::of_cell(FindingKind::SingleTrial, cell)));
    findings
}

/// Agreement with each published figure.
pub(super) fn published(run: &Run<'_>) -> Vec<Finding> {
    let figures = run.summary.published.iter();
    figures
        .map(|figure| Finding {
            value: figure.ratio,
            estimate: figure.measured_estimate,
            n: figure.measured_estimate.map(|measured| measured.n),
            verdict: Some(match figure.agrees {
                Some(true) => FindingVerdict::Shown,
                Some(false) => FindingVerdict::NotShown,
                None => FindingVerdict::CannotTell,
            }),
            ..Finding::new(FindingKind::Published).about(&figure.what)
        })
        .collect()
}
