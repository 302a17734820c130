//! Results of each driver of a cell.
//!
//! Each driver has its own verdict: if its figures are spoiled, the figures of the others are not. A driver
//! has one value per repeat and figure, from the first take in which the figure is usable. The only driver of a cell has the
//! figures of the cell: one figure has one interval.

use super::errors::ErrorShare;
use super::estimates::{commonest_kind, estimate, percentiles_alone, with_censored};
use crate::objective::driver_objective;
use crate::trials::{is_unanswered, kind_of, shows_saturation};
use experiment::Objective;
use results::{
    Clock, DisturbedFigures, DriverSummary, DriverView, Estimate, Figure, HistogramSummary, LoadResult,
    Percentiles, StreamSummary, TrialRecord,
};
use std::collections::BTreeMap;

/// Every driver of the trials of a cell, in the order in which the trials list them. `places` is the number
/// of repeats with a trial, `whole` has the figures of the cell if they are known.
pub(super) fn drivers(
    objective: &Objective,
    trials: &[&TrialRecord],
    places: usize,
    whole: Option<Whole<'_>>,
) -> Vec<DriverSummary> {
    let mut takes: Vec<((&str, &str), Vec<Take<'_>>)> = Vec::new();
    let mut positions: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for trial in trials {
        for view in trial.drivers() {
            let key = (view.namespace, view.name);
            let position = *positions.entry(key).or_insert_with(|| {
                takes.push((key, Vec::new()));
                takes.len() - 1
            });
            takes[position].1.push(Take { repeat: trial.repeat, view });
        }
    }
    let whole = whole.filter(|_| takes.len() == 1);
    takes.into_iter().filter_map(|(_, takes)| driver(objective, &takes, places, whole)).collect()
}

/// Figures of a cell's load.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a> {
    pub streams: Option<&'a StreamSummary>,
    pub response_time_us: Option<Percentiles>,
    pub rate_completed: Option<Estimate>,
}

/// A driver in one trial.
struct Take<'a> {
    repeat: usize,
    view: DriverView<'a>,
}

fn driver(
    objective: &Objective,
    takes: &[Take<'_>],
    places: usize,
    whole: Option<Whole<'_>>,
) -> Option<DriverSummary> {
    let first = takes.first()?.view;
    let first_takes = |figure: Figure, may_be_unanswered: bool| -> Vec<&LoadResult> {
        let mut first: BTreeMap<usize, &LoadResult> = BTreeMap::new();
        for Take { repeat, view } in takes {
            let Some(result) = view.result else { continue };
            let falls_there = || is_unanswered(&result.response_time_us, view.verdict, figure);
            if view.is_usable(figure) || may_be_unanswered && falls_there() {
                first.entry(*repeat).or_insert(result);
            }
        }
        first.into_values().collect()
    };
    let usable = |figure: Figure| first_takes(figure, false);
    let valid = usable(Figure::P50).len();
    let timed = |figure: Figure| first_takes(figure, true);
    let times = |figure: Figure| {
        timed(figure).into_iter().map(|result| &result.response_time_us).collect::<Vec<&HistogramSummary>>()
    };
    let alone = || Whole {
        streams: None,
        response_time_us: percentiles_alone(times).map(|times| with_censored(times, timed)),
        rate_completed: estimate(usable(Figure::Throughput).iter().map(|result| result.rate.completed)),
    };
    let Whole { streams, response_time_us, rate_completed } = whole.unwrap_or_else(alone);
    let kinds = takes.iter().map(|take| take.view).filter(|view| !view.is_valid()).map(|view| kind(&view));
    let errors = ErrorShare::new(takes.iter().filter_map(|take| Some(&take.view.result?.requests)));
    let mut summary = DriverSummary {
        name: first.name.to_owned(),
        namespace: first.namespace.to_owned(),
        target: first.target.to_owned(),
        valid,
        verdict: commonest_kind(kinds, valid, places),
        response_time_us,
        rate_completed,
        errors: errors.fraction,
        errors_high: errors.high,
        objective: None,
        disturbed: DisturbedFigures::new(),
    };
    let saturated = takes.iter().any(|take| shows_saturation(take.view.verdict));
    let times = |clock| match clock {
        Clock::ResponseTime => response_time_us.as_ref(),
        of_streams => streams?.times(of_streams),
    };
    summary.objective = driver_objective(objective, &summary, times, saturated);
    Some(summary)
}

/// Kind of the first reason why a driver's figures are not valid.
fn kind<'a>(view: &DriverView<'a>) -> &'a str {
    match view.verdict.reasons.first() {
        Some(reason) => kind_of(reason),
        None if view.result.is_none() => "no result",
        None => "no responses",
    }
}
