//! Drivers of cells with several of them: the same figures for the terminal and for HTML. [`crate::services`]
//! and [`crate::edges`] follow the same pattern.
//!
//! A cell with a single driver and a single service has no such table: their figures are those of the cell
//! and of its components.

use crate::conditions::ConditionLabels;
use crate::format::{self, Interval, TimeUnit};
use crate::tables::{Column, Group, Table, TableCell, TableRow};
use results::{Cell, DriverObjective, DriverSummary, Estimate, Figure, Summary};
use serde::Serialize;
use statistics::copies::Spread;

/// Results of each driver.
#[derive(Clone, Debug, Serialize)]
pub struct DriverTable {
    /// Unit of every time in the table.
    pub unit: &'static str,
    /// True if the experiment has an objective.
    pub has_objective: bool,
    /// One group per cell with several drivers.
    pub table: Table,
}

impl DriverTable {
    /// The table of a run; `None` if no cell has several drivers.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let cells: Vec<&Cell> = summary.cells.iter().filter(|cell| cell.drivers.len() > 1).collect();
        let drivers = || cells.iter().flat_map(|cell| &cell.drivers);
        let unit = TimeUnit::for_times(drivers().filter_map(|driver| Some(p99(driver)?.estimate)));
        let has_objective = drivers().any(|driver| driver.objective.is_some());
        let objective = match has_objective {
            true => Column::text("Objective").terminal("objective"),
            false => Column::text("Remark"),
        };
        let columns = vec![
            Column::name("Driver").terminal("driver"),
            Column::text("Namespace"),
            Column::number("Valid"),
            Column::number("p50").terminal(&format!("p50, {}", unit.symbol())),
            Column::number("p99").terminal(&format!("p99, {}", unit.symbol())),
            Column::number("Requests/s").terminal("requests/s"),
            Column::number("Errors"),
            objective,
        ];
        let group = |cell: &Cell, place: String| {
            let rows = slowest_first(cell).into_iter().map(|driver| driver_row(driver, unit)).collect();
            Group::selected(place, driver_headline(cell, unit), rows, Vec::new(), "slowest")
        };
        let groups = groups(summary, &cells, group);
        let table = Table { columns, groups };
        (!cells.is_empty()).then_some(Self { unit: unit.symbol(), has_objective, table })
    }
}

/// One group per cell.
pub(crate) fn groups(
    summary: &Summary,
    cells: &[&Cell],
    group: impl Fn(&Cell, String) -> Group,
) -> Vec<Group> {
    let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
    let place = |cell: &Cell| format!("{} at {}", cell.mode, labels.label(cell.conditions()));
    cells.iter().map(|cell| group(cell, place(cell))).collect()
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

fn driver_row(driver: &DriverSummary, unit: TimeUnit) -> TableRow {
    let times = driver.response_time_us.as_ref();
    let no_figures = times.is_none().then(|| driver.verdict.clone());
    let objective = driver.objective.map_or("", |objective| objective.name()).replace('-', " ");
    let objective = no_figures.unwrap_or(objective);
    let is_notable = !objective.is_empty() && objective != DriverObjective::Met.name();
    vec![
        qualified(&driver.namespace, &driver.name).into(),
        driver.namespace.as_str().into(),
        driver.valid.into(),
        unit.percentile(times, Figure::P50).into(),
        unit.percentile(times, Figure::P99).into(),
        TableCell::figure(driver.rate_completed, Interval::new),
        format::percent(driver.errors).into(),
        TableCell::from(objective).flagged(is_notable),
    ]
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
        driver.response_time_us.is_some_and(|times| times.censored(Figure::P99).is_some())
    };
    let censored: Vec<&DriverSummary> = cell.drivers.iter().filter(is_censored).collect();
    if let Some(first) = censored.first() {
        let above = first.response_time_us.and_then(|times| times.censored(Figure::P99)?.above_us);
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
