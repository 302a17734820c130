//! The whole distribution of each open-loop cell on both clocks: the same figures for the terminal and for
//! HTML.

use crate::drivers::groups;
use crate::format::{self, TimeUnit};
use crate::tables::{Column, Group, Table, TableRow};
use results::{AbsentPercentile, Cell, DistributionPoint, RequestDistribution, Summary};
use serde::Serialize;

/// Response time (corrected for coordinated omission) and service time (uncorrected), side by side.
#[derive(Clone, Debug, Serialize)]
pub struct ClockTable {
    /// One group per cell, one row per clock, one column per percentile. A terminal has the cells whose clocks differ.
    pub table: Table,
    /// Explanations of the symbols in the table.
    pub notes: Vec<&'static str>,
}

const TOO_FEW: &str = "–: fewer than ten requests lie beyond this percentile.";
const UNANSWERED: &str = ">: this request had no response; requests without one rank above all others.";

impl ClockTable {
    /// The table of a run; `None` if no open-loop cell has figures.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let cells: Vec<&Cell> = summary.cells.iter().filter(|cell| cell.distribution.is_some()).collect();
        let distributions: Vec<&RequestDistribution> =
            cells.iter().filter_map(|cell| cell.distribution.as_ref()).collect();
        let first = distributions.first()?;
        let is_absent = |reason| {
            let points = distributions.iter().flat_map(|distribution| &distribution.percentiles);
            points.into_iter().any(|point| point.absent == Some(reason))
        };
        let notes = [(AbsentPercentile::TooFewRequests, TOO_FEW), (AbsentPercentile::Unanswered, UNANSWERED)];
        let percentiles = first.percentiles.iter().map(|point| {
            let percentile = point.percentile.to_string();
            Column::number(&format!("{percentile} %")).terminal(&percentile)
        });
        let columns = std::iter::once(Column::name("Clock").terminal("percentile")).chain(percentiles);
        let group = |cell: &Cell, place: String| {
            let distributions = cell.distribution.iter();
            let group = Group::new(place, distributions.clone().flat_map(rows).collect());
            distributions.fold(group, |group, distribution| Group {
                note: requests(distribution),
                flag: distribution.saturated,
                only_html: !(distribution.saturated || distribution.clocks_differ()),
                ..group
            })
        };
        Some(Self {
            table: Table { columns: columns.collect(), groups: groups(summary, &cells, group) },
            notes: notes.into_iter().filter(|(reason, _)| is_absent(*reason)).map(|(_, note)| note).collect(),
        })
    }

    /// Number of cells whose clocks show the same.
    #[must_use]
    pub fn alike(&self) -> usize {
        self.table.groups.iter().filter(|group| group.only_html).count()
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

fn rows(distribution: &RequestDistribution) -> Vec<TableRow> {
    let above_us = distribution.censored_above_us.or_else(|| distribution.slowest_answered_us());
    let above = above_us.map(time).unwrap_or_default();
    let row = |name: &str, read: &dyn Fn(&DistributionPoint) -> String| -> TableRow {
        let values = distribution.percentiles.iter().map(|point| read(point).into());
        std::iter::once(name.into()).chain(values).collect()
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
