//! Whether a run, or a single result, met its objective: the exit status.

mod checks;

pub(crate) use checks::highest_of_drivers;
pub use checks::{ObjectiveCheck, checks};

use crate::trials::shows_saturation;
use crate::words;
use DriverObjective::{Met, Missed, NotShown};
use experiment::objective::{Bound, SAMPLES_BEYOND_A_PERCENTILE};
use experiment::plan::cells;
use experiment::{Experiment, Objective};
use results::{
    BoundResult, Cell, Clock, DriverObjective, DriverSummary, Estimate, Figure, LoadResult, Metric,
    ObjectiveResult, Percentiles, Summary,
};
use std::time::Duration;

/// Percentiles of fewer separate events than this say little about the next run.
const MIN_EPISODES: u64 = SAMPLES_BEYOND_A_PERCENTILE as u64;

/// How a run ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ObjectiveOutcome {
    /// Something was measured, and every cell met the objective, or there was no objective.
    Good,
    /// No trial is valid, with or without an objective.
    NothingValid,
    /// The run was cut short: fewer trials were measured than planned. A part of a run meets no objective.
    CutShort {
        /// Trials that were measured.
        measured: usize,
        /// Trials that were planned.
        planned: usize,
    },
    /// A cell missed the objective, or is not shown to meet it. Holds each reason as text.
    Failed(Vec<String>),
}

impl ObjectiveOutcome {
    /// True if the exit status is 0.
    #[must_use]
    pub fn is_good(&self) -> bool {
        *self == Self::Good
    }
}

/// Compares each cell's estimates with the objective. A cell without a valid trial does not meet it.
#[must_use]
pub fn objective_met(experiment: &Experiment, summary: &Summary) -> ObjectiveOutcome {
    if summary.cells.iter().all(|cell| cell.valid == 0) {
        return ObjectiveOutcome::NothingValid;
    }
    let planned = cells(experiment).len() * experiment.repeats;
    let measured = summary.cells.iter().map(|cell| cell.trials - cell.retakes).sum();
    if measured < planned {
        return ObjectiveOutcome::CutShort { measured, planned };
    }
    let misses: Vec<String> = summary.cells.iter().flat_map(|cell| misses(experiment, cell)).collect();
    if misses.is_empty() { ObjectiveOutcome::Good } else { ObjectiveOutcome::Failed(misses) }
}

/// True if at least one cell missed the objective. A cell that neither met nor missed it is not shown to meet it.
#[must_use]
pub fn is_missed(summary: &Summary) -> bool {
    summary.cells.iter().any(|cell| cell.objective == Some(Missed))
}

/// Compares one result with an objective.
#[must_use]
pub fn check_result(objective: &Objective, result: &LoadResult) -> ObjectiveResult {
    let bounds: Vec<BoundResult> = objective
        .measured(result)
        .into_iter()
        .map(|(bound, measured)| BoundResult {
            figure: bound.name().to_owned(),
            unit: bound.unit().to_owned(),
            limit: bound.limit(),
            measured,
            holds: bound.holds(measured),
        })
        .collect();
    let mut notes: Vec<String> = objective
        .percentiles()
        .filter_map(|(metric, percentile)| undecided_percentile(result, metric, percentile))
        .collect();
    let saturated = shows_saturation(&result.verdict);
    if saturated {
        notes.push(
            "the offered rate was not kept up: how long requests waited depends on how long the run lasted"
                .to_owned(),
        );
    }
    if result.interrupted {
        notes.push(format!("cut short after {:.1} s: a part of a run meets no objective", result.duration_s));
    }
    let met = result.response_time_us.count > 0
        && !saturated
        && !result.interrupted
        && bounds.iter().all(|bound| bound.holds);
    ObjectiveResult { met, bounds, notes }
}

/// Note on a percentile that rests on too little to be decided by this result.
fn undecided_percentile(result: &LoadResult, metric: Metric, percentile: f64) -> Option<String> {
    let name = bound_name(metric);
    let clock = metric.clock()?;
    let measured = result.times(clock)?.requests();
    let beyond = measured as f64 * (1.0 - percentile / 100.0);
    // The fraction is not exact in binary.
    if beyond < SAMPLES_BEYOND_A_PERCENTILE * 0.999 {
        let what = if clock == Clock::EventGap { "gaps" } else { "requests" };
        return Some(format!(
            "{name} rests on {beyond:.1} of {measured} {what} beyond it: a longer run would decide"
        ));
    }
    // Episodes are those of response times.
    let episodes = result.episodes.get(name).filter(|episodes| **episodes < MIN_EPISODES)?;
    let events = if *episodes == 1 { "event" } else { "events" };
    Some(format!("{name} rests on {episodes} separate {events}: a longer run would decide"))
}

/// Name of a time in objectives.
pub(crate) fn bound_name(metric: Metric) -> &'static str {
    Bound::Time(metric, Duration::ZERO).name()
}

/// Whether a cell met the objective; `None` without an objective.
pub(crate) fn of_cell(objective: &Objective, cell: &Cell) -> Option<DriverObjective> {
    let checks = checks(objective, cell);
    let any = |outcome| checks.iter().any(|check| check.outcome == outcome);
    (!checks.is_empty()).then(|| match (any(Missed), any(NotShown)) {
        (true, _) => Missed,
        (false, true) => NotShown,
        (false, false) => Met,
    })
}

/// Reasons why a cell is not shown to meet the objective. Empty if it meets every part of it, or without an
/// objective.
#[must_use]
pub fn misses(experiment: &Experiment, cell: &Cell) -> Vec<String> {
    let unmet = checks(&experiment.objective, cell).into_iter().filter(|check| check.outcome != Met);
    let mut misses: Vec<String> = unmet.flat_map(|check| check.misses).collect();
    // Without a valid trial, no bound is shown to hold, always for the same reason.
    misses.dedup();
    let place = words::cell(cell);
    misses.into_iter().map(|miss| format!("{place}: {miss}")).collect()
}

/// Compares a driver's intervals with an objective. `times` are those of a clock, `saturated`: its target did not keep up in some
/// trial.
pub(crate) fn driver_objective<'a>(
    objective: &Objective,
    driver: &DriverSummary,
    times: impl Fn(Clock) -> Option<&'a Percentiles>,
    saturated: bool,
) -> Option<DriverObjective> {
    if objective.is_empty() {
        return None;
    }
    let errors = objective.errors.map(|bound| errors_within(driver.errors, driver.errors_high, bound));
    let bounds = objective.times().map(|(metric, bound)| {
        let times = metric.clock().and_then(&times);
        times.map_or(NotShown, |times| within(times, metric.spoiled_by(), bound_us(bound), driver.valid))
    });
    let all: Vec<DriverObjective> = bounds.chain(errors).collect();
    Some(if saturated || all.contains(&Missed) {
        Missed
    } else if driver.valid == 0 || all.contains(&NotShown) {
        NotShown
    } else {
        Met
    })
}

/// Compares an interval with the greatest allowed value. A figure that falls among requests without a
/// response is absent, and meets no bound. The maximum response time needs no interval, but must be known for
/// all `valid` trials: a trial in which it is spoiled might have been slower.
fn within(times: &Percentiles, figure: Figure, bound_us: f64, valid: usize) -> DriverObjective {
    match times.figure(figure) {
        Some(max) if figure == Figure::Max && max.estimate > bound_us => Missed,
        Some(max) if figure == Figure::Max && max.n >= valid => Met,
        Some(Estimate { low: Some(low), .. }) if low > bound_us => Missed,
        Some(Estimate { high: Some(high), .. }) if high <= bound_us => Met,
        None if falls_among_unanswered(times, figure) => Missed,
        _ => NotShown,
    }
}

/// How a share of errors lies to the greatest that is good: too few requests without an error do not show that errors are rare. A
/// bound of zero, which no number of requests shows, is held against the count.
fn errors_within(errors: f64, high: Option<f64>, bound: f64) -> DriverObjective {
    match high {
        _ if errors > bound => Missed,
        _ if bound <= 0.0 => Met,
        Some(high) if high <= bound => Met,
        _ => NotShown,
    }
}

/// True if the figure falls among requests without a response. A mean that includes such a request exceeds
/// every bound, as the maximum does.
fn falls_among_unanswered(times: &Percentiles, figure: Figure) -> bool {
    match figure {
        Figure::Mean => times.censored.is_some(),
        figure => times.censored(figure).is_some(),
    }
}

/// True if a time of a cell is shown to be within its bound.
pub(crate) fn is_within(cell: &Cell, metric: Metric, bound: Duration) -> bool {
    let times = metric.clock().and_then(|clock| cell.times(clock));
    times.is_some_and(|times| within(times, metric.spoiled_by(), bound_us(bound), cell.valid) == Met)
}

fn bound_us(bound: Duration) -> f64 {
    bound.as_secs_f64() * 1e6
}
