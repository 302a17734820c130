//! Checks of a cell against each part of an objective.

use super::{bound_name, bound_us, errors_within, within};
use crate::trials::SATURATED;
use crate::words;
use DriverObjective::{Met, Missed, NotShown};
use experiment::Objective;
use results::units::format_fraction;
use results::{Cell, Clock, DriverObjective, DriverSummary, Figure, Metric, Percentiles};
use std::time::Duration;

/// One part of an objective, checked for a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveCheck {
    /// Name of the part, such as `p99 within 2 ms`.
    pub name: String,
    /// Met, missed or not shown.
    pub outcome: DriverObjective,
    /// The figure with its interval; absent if the cell has none.
    pub measured: Option<String>,
    /// Reasons why the part is not met; empty if it is.
    pub misses: Vec<String>,
}

/// Checks every part of an objective for a cell: the trials themselves, each bound, each driver. Empty
/// without an objective.
#[must_use]
pub fn checks(objective: &Objective, cell: &Cell) -> Vec<ObjectiveCheck> {
    if objective.is_empty() {
        return Vec::new();
    }
    let times = objective.times().map(|(metric, bound)| time(cell, metric, bound));
    let mut checks = vec![trials(cell)];
    checks.extend(times);
    checks.extend(objective.errors.map(|bound| errors(cell, bound)));
    checks.extend((cell.drivers.len() > 1).then(|| drivers(objective, cell)));
    checks
}

/// Checks that the load was kept up and answered in every trial.
fn trials(cell: &Cell) -> ObjectiveCheck {
    let counted = [
        ("saturated", cell.saturated_trials),
        ("too many errors", cell.error_trials),
        ("failed", cell.failed_trials),
    ];
    let unsound: Vec<(&str, usize)> = unsound(cell).collect();
    let happened = counted.into_iter().chain(unsound.iter().copied()).filter(|(_, trials)| *trials > 0);
    let mut misses: Vec<String> =
        happened.map(|(what, trials)| format!("{what} in {trials} of {} trials", cell.trials)).collect();
    if cell.valid == 0 {
        misses.push(no_valid_trial(cell));
    }
    let outcome = if cell.saturated_trials > 0 || cell.error_trials > 0 {
        Missed
    } else if cell.valid == 0 || cell.failed_trials > 0 || !unsound.is_empty() {
        NotShown
    } else {
        Met
    };
    let measured = Some(format!("{} of {} trials valid", cell.valid, cell.trials));
    ObjectiveCheck { name: "every trial kept up".to_owned(), outcome, measured, misses }
}

/// Kinds of reasons by which a cell does not represent what it is named after: a deployment or load other
/// than the named one was measured. Disturbances by the machine are not among them, as they say nothing about
/// the target.
const UNSOUND: [&str; 10] = [
    // Of a trial that was cut short; saturation of other trials is counted.
    SATURATED,
    "path-not-proven",
    "scenario-not-proven",
    "rates-disagree",
    "connections",
    "unreachable",
    "throttled",
    "nothing-measured",
    "generator-full",
    "generator-lost",
];

/// Trials without a sound median for such a reason; the other trials do not represent them.
fn unsound(cell: &Cell) -> impl Iterator<Item = (&str, usize)> {
    let median = cell.spoiled.iter().find(|spoiled| spoiled.figure == Figure::P50);
    let reasons = median.into_iter().flat_map(|spoiled| &spoiled.reasons);
    let is_counted = |kind: &str| kind == SATURATED && cell.saturated_trials > 0;
    let unsound = move |kind: &str| UNSOUND.contains(&kind) && !is_counted(kind);
    reasons.map(|(kind, trials)| (kind.as_str(), *trials)).filter(move |(kind, _)| unsound(kind))
}

fn no_valid_trial(cell: &Cell) -> String {
    format!("no valid trial ({})", cell.verdict)
}

fn time(cell: &Cell, metric: Metric, bound: Duration) -> ObjectiveCheck {
    let (name, figure) = (bound_name(metric), metric.spoiled_by());
    let check = ObjectiveCheck {
        name: format!("{name} within {}", words::bound(bound)),
        outcome: NotShown,
        measured: None,
        misses: Vec::new(),
    };
    let Some(times) = metric.clock().and_then(|clock| cell.times(clock)) else {
        let miss = match cell.valid {
            0 => no_valid_trial(cell),
            _ => format!("{name} is of streams, and no response was one"),
        };
        return ObjectiveCheck { misses: vec![miss], ..check };
    };
    ObjectiveCheck {
        outcome: within(times, figure, bound_us(bound), cell.valid),
        measured: times.figure(figure).map(|measured| words::latency(&measured)),
        misses: missed_time(times, metric, bound, cell.valid).into_iter().collect(),
        ..check
    }
}

/// Why a bound is not shown to hold; `None` if it holds.
fn missed_time(times: &Percentiles, metric: Metric, bound: Duration, valid: usize) -> Option<String> {
    let (name, figure, limit) = (bound_name(metric), metric.spoiled_by(), words::bound(bound));
    let verdict = within(times, figure, bound_us(bound), valid);
    Some(match (verdict, times.figure(figure)) {
        (Met, _) => return None,
        (Missed, Some(measured)) => format!("{name} is {}, above {limit}", words::latency(&measured)),
        (NotShown, Some(max)) if figure == Figure::Max => {
            format!("{name} is known of {} of {valid} trials alone, {} there", max.n, words::latency(&max))
        }
        (NotShown, Some(measured)) => {
            format!("{name} is {}, not shown to be within {limit}", words::latency(&measured))
        }
        (Missed, None) if matches!(figure, Figure::Max | Figure::Mean) => {
            format!("some requests had no response, which a bound of {name} does not allow")
        }
        (Missed, None) => {
            let known = times.censored(figure).and_then(|censored| censored.above_us);
            let known = known.map(|us| format!(" (> {})", words::latency_value(us))).unwrap_or_default();
            format!("{name} falls among requests without a response{known}, which {limit} does not allow")
        }
        (NotShown, None) => format!("no trial has a usable {name}"),
    })
}

fn errors(cell: &Cell, bound: f64) -> ObjectiveCheck {
    let (measured, limit) = (words::percent(cell.errors), format_fraction(bound));
    let (outcome, miss) = match (errors_within(cell.errors, cell.errors_high, bound), cell.valid) {
        (Missed, _) => (Missed, Some(format!("{measured} of the requests failed, above {limit}"))),
        (_, 0) => (NotShown, Some(no_valid_trial(cell))),
        (NotShown, _) => {
            let high = words::percent(cell.errors_high.unwrap_or(1.0));
            let miss = format!("{measured} of the requests failed, up to {high} not excluded, above {limit}");
            (NotShown, Some(miss))
        }
        (Met, _) => (Met, None),
    };
    ObjectiveCheck {
        name: format!("errors within {limit}"),
        outcome,
        measured: (cell.valid > 0).then_some(measured),
        misses: miss.into_iter().collect(),
    }
}

/// The highest bounded figure of the response times, by which drivers are ranked. Streams have a single driver.
pub(crate) fn highest_of_drivers(objective: &Objective) -> Figure {
    let of_responses = objective.times().filter(|(metric, _)| metric.clock() == Some(Clock::ResponseTime));
    of_responses.last().map_or(Figure::P99, |(metric, _)| metric.spoiled_by())
}

/// Checks that none of several drivers missed the objective.
fn drivers(objective: &Objective, cell: &Cell) -> ObjectiveCheck {
    let missed: Vec<&DriverSummary> =
        cell.drivers.iter().filter(|driver| driver.objective == Some(Missed)).collect();
    let figure = highest_of_drivers(objective);
    let time = |driver: &DriverSummary| driver.response_time_us?.figure(figure);
    let slowest = missed.iter().filter_map(|driver| Some((driver, time(driver)?)));
    let slowest = slowest.max_by(|(_, one), (_, other)| one.estimate.total_cmp(&other.estimate)).map(
        |(driver, time)| {
            format!(", the slowest {} ({} {})", driver.name, figure.name(), words::latency(&time))
        },
    );
    let (count, all) = (missed.len(), cell.drivers.len());
    let (outcome, miss) = match (count, cell.valid) {
        (1.., _) => {
            let miss = format!("{count} of {all} drivers missed it{}", slowest.unwrap_or_default());
            (Missed, Some(miss))
        }
        (0, 0) => (NotShown, Some(no_valid_trial(cell))),
        (0, _) => (Met, None),
    };
    ObjectiveCheck {
        name: "every driver".to_owned(),
        outcome,
        measured: (cell.valid > 0).then(|| format!("{} of {all} drivers did not miss it", all - count)),
        misses: miss.into_iter().collect(),
    }
}
