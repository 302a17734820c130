//! The whole distribution of each open-loop cell on both clocks: the same figures for the terminal and for
//! HTML.

use crate::conditions::ConditionLabels;
use crate::format::{self, TimeUnit};
use results::{AbsentPercentile, Cell, DistributionPoint, RequestDistribution, Summary};
use serde::Serialize;

/// Response time (corrected for coordinated omission) and service time (uncorrected), side by side.
#[derive(Clone, Debug, Serialize)]
pub struct ClockTable {
    /// Percentiles, one column each.
    pub columns: Vec<String>,
    /// One per cell.
    pub cells: Vec<ClockCell>,
    /// Explanations of the symbols in the table.
    pub notes: Vec<&'static str>,
}

/// Distribution of one cell.
#[derive(Clone, Debug, Serialize)]
pub struct ClockCell {
    /// Name of the mode.
    pub mode: &'static str,
    /// Load such as `1000/s`.
    pub load: String,
    /// Number of requests and of trials.
    pub requests: String,
    /// True if the cell is saturated.
    pub saturated: bool,
    /// True if the clocks show different distributions.
    pub differs: bool,
    /// One row per clock.
    pub rows: Vec<ClockRow>,
}

/// Distribution on one clock.
#[derive(Clone, Debug, Serialize)]
pub struct ClockRow {
    /// Name of the clock.
    pub name: &'static str,
    /// One figure with its unit per column.
    pub values: Vec<String>,
}

const TOO_FEW: &str = "–: fewer than ten requests lie beyond this percentile.";
const UNANSWERED: &str = ">: this request had no response; requests without one rank above all others.";

impl ClockTable {
    /// The table of a run; `None` if no open-loop cell has figures.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
        let with_clocks = summary.cells.iter().filter_map(|cell| Some((cell, cell.distribution.as_ref()?)));
        let distributions: Vec<(&Cell, &RequestDistribution)> = with_clocks.collect();
        let (_, first) = distributions.first()?;
        let is_absent = |reason| {
            let points = distributions.iter().flat_map(|(_, distribution)| &distribution.percentiles);
            points.into_iter().any(|point| point.absent == Some(reason))
        };
        let notes = [(AbsentPercentile::TooFewRequests, TOO_FEW), (AbsentPercentile::Unanswered, UNANSWERED)];
        Some(Self {
            columns: first.percentiles.iter().map(|point| point.percentile.to_string()).collect(),
            notes: notes.into_iter().filter(|(reason, _)| is_absent(*reason)).map(|(_, note)| note).collect(),
            cells: distributions
                .iter()
                .map(|(cell, distribution)| ClockCell {
                    mode: cell.mode.name(),
                    load: labels.label(cell.conditions()),
                    requests: requests(distribution),
                    saturated: distribution.saturated,
                    differs: distribution.saturated || distribution.clocks_differ(),
                    rows: rows(distribution),
                })
                .collect(),
        })
    }
}

/// `12 000 requests of 3 trials`; with the share of requests without a response, if there are any.
fn requests(distribution: &RequestDistribution) -> String {
    let due = format::counted(distribution.due, "request", "requests");
    let trials = format::counted(distribution.trials as u64, "trial", "trials");
    let unanswered = distribution.due.saturating_sub(distribution.answered);
    let saturated = if distribution.saturated { "saturated, " } else { "" };
    if unanswered == 0 {
        return format!("{saturated}{due} of {trials}");
    }
    let share = format::percent(unanswered as f64 / distribution.due.max(1) as f64);
    format!("{saturated}{due} of {trials}, {share} of them without a response")
}

fn rows(distribution: &RequestDistribution) -> Vec<ClockRow> {
    let above_us = distribution.censored_above_us.or_else(|| distribution.slowest_answered_us());
    let above = above_us.map(time).unwrap_or_default();
    let row = |name, read: &dyn Fn(&DistributionPoint) -> String| ClockRow {
        name,
        values: distribution.percentiles.iter().map(read).collect(),
    };
    let figure = |figure: Option<f64>| figure.map_or_else(|| format::ABSENT.to_owned(), time);
    let corrected = row("corrected", &|point| match (point.response_time_us, point.absent) {
        (None, Some(AbsentPercentile::Unanswered)) => format!("> {above}"),
        (time, _) => figure(time),
    });
    let answered = row("answered alone", &|point| figure(point.answered_response_time_us));
    let uncorrected = row("uncorrected", &|point| figure(point.service_time_us));
    if distribution.saturated && distribution.answered < distribution.due {
        vec![corrected, answered, uncorrected]
    } else {
        vec![corrected, uncorrected]
    }
}

/// A time in a suitable unit: queueing times are in seconds where service times are in milliseconds.
fn time(time_us: f64) -> String {
    let unit = if time_us < 1e6 { TimeUnit::for_times([time_us]) } else { TimeUnit::Seconds };
    unit.time(time_us)
}
