//! Drivers of cells with several of them: the same figures for the terminal and for HTML. [`crate::services`]
//! and [`crate::edges`] follow the same pattern.
//!
//! A cell with a single driver and a single service has no such table: their figures are those of the cell
//! and of its components.

use crate::conditions::ConditionLabels;
use crate::format::{self, Interval, TimeUnit};
use results::{Cell, DriverObjective, DriverSummary, Estimate, Mode, Summary, TimeFigure};
use serde::Serialize;
use statistics::copies::Spread;

/// Longer tables show the first [`MAX_ROWS`] rows, or copies folded together.
pub const MAX_UNFOLDED_ROWS: usize = 8;

/// Rows of a table that is cut to the first ones.
pub const MAX_ROWS: usize = 5;

/// Results of each driver.
#[derive(Clone, Debug, Serialize)]
pub struct DriverTable {
    /// Unit of every time in the table.
    pub unit: &'static str,
    /// True if the experiment has an objective.
    pub has_objective: bool,
    /// One group per cell with several drivers.
    pub cells: Vec<Group<DriverRow>>,
}

/// The rows of one cell.
#[derive(Clone, Debug, Serialize)]
pub struct Group<Row> {
    /// Load such as `1000/s`.
    pub load: String,
    /// Name of the mode.
    pub mode: &'static str,
    /// Summary of all rows in one sentence.
    pub headline: String,
    /// Which rows are shown, if not all: such as `The 5 slowest`.
    pub selection: Option<String>,
    /// True if each row combines copies in several namespaces: figures are medians over copies, ranges are
    /// over copies.
    pub folded: bool,
    /// Slowest driver or edge first; the service with the most CPU first.
    pub rows: Vec<Row>,
    /// Every row, if `rows` does not have them all.
    pub all: Vec<Row>,
}

/// Rows of a cell before they are labelled.
pub(crate) struct Rows<Row> {
    pub(crate) headline: String,
    pub(crate) selection: Option<String>,
    pub(crate) folded: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) all: Vec<Row>,
}

impl<Row: Clone> Rows<Row> {
    /// All rows if there are few; otherwise the copies folded together if that leaves fewer, cut to the first
    /// ones if needed. `order` describes what comes first, such as `slowest`.
    pub(crate) fn new(headline: String, all: Vec<Row>, copies: Vec<Row>, order: &str) -> Self {
        if all.len() <= MAX_UNFOLDED_ROWS {
            return Self { headline, selection: None, folded: false, rows: all, all: Vec::new() };
        }
        let folded = !copies.is_empty() && copies.len() < all.len();
        let mut rows = if folded { copies } else { all.clone() };
        let selection = (rows.len() > MAX_UNFOLDED_ROWS).then(|| {
            rows.truncate(MAX_ROWS);
            format!("The {MAX_ROWS} {order}")
        });
        Self { headline, selection, folded, rows, all }
    }
}

/// Results of a driver.
#[derive(Clone, Debug, Serialize)]
pub struct DriverRow {
    /// Name, with the namespace if it has one.
    pub name: String,
    /// Namespace; empty in a topology with a single namespace.
    pub namespace: String,
    /// Number of trials in its estimates.
    pub valid: usize,
    /// Median response time, in the table's unit.
    pub p50: Interval,
    /// 99th percentile of the response time, in the table's unit.
    pub p99: Interval,
    /// Responses per second.
    pub completed: Interval,
    /// Failed requests and error statuses, as a percentage.
    pub errors: String,
    /// `met`, `missed` or `not shown`; or the reason if there are no figures.
    pub objective: String,
}

impl DriverTable {
    /// The table of a run; `None` if no cell has several drivers.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let cells: Vec<&Cell> = summary.cells.iter().filter(|cell| cell.drivers.len() > 1).collect();
        let drivers = || cells.iter().flat_map(|cell| &cell.drivers);
        let unit = TimeUnit::for_times(drivers().filter_map(|driver| Some(p99(driver)?.estimate)));
        let has_objective = drivers().any(|driver| driver.objective.is_some());
        let rows = |cell: &Cell| {
            Rows::new(driver_headline(cell, unit), driver_rows(cell, unit), Vec::new(), "slowest")
        };
        let groups = groups(summary, &cells, rows);
        (!cells.is_empty()).then_some(Self { unit: unit.symbol(), has_objective, cells: groups })
    }
}

pub(crate) fn groups<Row>(
    summary: &Summary,
    cells: &[&Cell],
    read: impl Fn(&Cell) -> Rows<Row>,
) -> Vec<Group<Row>> {
    let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
    let group = |cell: &&Cell| {
        let Rows { headline, selection, folded, rows, all } = read(cell);
        let load = labels.label(cell.conditions());
        Group { load, mode: Mode::name(cell.mode), headline, selection, folded, rows, all }
    };
    cells.iter().map(group).collect()
}

fn p99(driver: &DriverSummary) -> Option<Estimate> {
    driver.response_time_us.and_then(|times| times.p99)
}

/// Drivers without a figure first, then by the 99th percentile in descending order.
fn slowest_first(cell: &Cell) -> Vec<&DriverSummary> {
    let mut drivers: Vec<&DriverSummary> = cell.drivers.iter().collect();
    let time = |driver: &DriverSummary| p99(driver).map_or(f64::INFINITY, |p99| p99.estimate);
    drivers.sort_by(|one, other| time(other).total_cmp(&time(one)));
    drivers
}

fn driver_rows(cell: &Cell, unit: TimeUnit) -> Vec<DriverRow> {
    let row = |driver: &DriverSummary| {
        let times = driver.response_time_us;
        let time = |figure| unit.percentile(times.as_ref(), figure);
        let no_figures = times.is_none().then(|| driver.verdict.clone());
        let objective = driver.objective.map_or("", |objective| objective.name()).replace('-', " ");
        DriverRow {
            name: qualified(&driver.namespace, &driver.name),
            namespace: driver.namespace.clone(),
            valid: driver.valid,
            p50: time(TimeFigure::P50),
            p99: time(TimeFigure::P99),
            completed: interval(driver.rate_completed, Interval::new),
            errors: format::percent(driver.errors),
            objective: no_figures.unwrap_or(objective),
        }
    };
    slowest_first(cell).into_iter().map(row).collect()
}

/// `5 drivers: p99 0.98 to 2.31 ms, median 1.12 ms, slowest tenant-5/generator; objective met by 3, missed by 1, not shown for 1`.
fn driver_headline(cell: &Cell, unit: TimeUnit) -> String {
    let mut text = format!("{} drivers", cell.drivers.len());
    let measured: Vec<(&DriverSummary, Estimate)> =
        slowest_first(cell).into_iter().filter_map(|driver| Some((driver, p99(driver)?))).collect();
    if let (Some((slowest, most)), Some((_, least))) = (measured.first(), measured.last()) {
        let (name, least) = (qualified(&slowest.namespace, &slowest.name), unit.number(least.estimate));
        let median = Spread::new(measured.iter().map(|(_, p99)| p99.estimate));
        let median = median.map_or_else(String::new, |spread| unit.time(spread.median));
        text += &format!(": p99 {least} to {}, median {median}, slowest {name}", unit.time(most.estimate));
    }
    let is_censored = |driver: &&DriverSummary| {
        driver.response_time_us.is_some_and(|times| times.censored(TimeFigure::P99).is_some())
    };
    let censored: Vec<&DriverSummary> = cell.drivers.iter().filter(is_censored).collect();
    if let Some(first) = censored.first() {
        let above = first.response_time_us.and_then(|times| times.censored(TimeFigure::P99)?.above_us);
        text += &format!("; {} with p99 {}", censored.len(), format::above(above));
    }
    let without = cell.drivers.len() - measured.len() - censored.len();
    if without > 0 {
        text += &format!("; {without} without a valid trial");
    }
    let count = |objective: DriverObjective| {
        cell.drivers.iter().filter(|driver| driver.objective == Some(objective)).count()
    };
    let counts: Vec<String> = [
        ("met by", count(DriverObjective::Met)),
        ("missed by", count(DriverObjective::Missed)),
        ("not shown for", count(DriverObjective::NotShown)),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .map(|(what, count)| format!("{what} {count}"))
    .collect();
    if !counts.is_empty() {
        text += &format!("; objective {}", counts.join(", "));
    }
    text
}

pub(crate) fn interval(estimate: Option<Estimate>, read: impl Fn(&Estimate) -> Interval) -> Interval {
    estimate.as_ref().map_or_else(Interval::absent, read)
}

/// The estimate of a single one with its confidence interval; for copies, the median with their range.
pub(crate) fn over_copies_estimate(
    estimates: impl IntoIterator<Item = Option<Estimate>>,
) -> Option<Estimate> {
    let known: Vec<Estimate> = estimates.into_iter().flatten().collect();
    match known.as_slice() {
        [only] => Some(*only),
        copies => Spread::new(copies.iter().map(|copy| copy.estimate)).map(|spread| spread.with_range()),
    }
}

/// A name with its namespace, unless the name already has it.
pub(crate) fn qualified(namespace: &str, name: &str) -> String {
    let has_it = name.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('/'));
    if namespace.is_empty() || has_it { name.to_owned() } else { format!("{namespace}/{name}") }
}
