//! Drivers and services of cells that have several: the same figures for the terminal and for HTML.
//!
//! A cell of a single driver and a single service has no such table: their figures are those of the cell and of its
//! components.

use crate::conditions::ConditionLabels;
use crate::format::{self, Interval, TimeUnit};
use experiment::Mode;
use experiment::schema::{Cell, DriverObjective, DriverSummary, Estimate, ServiceSummary, Summary};
use serde::Serialize;

/// What each driver measured.
#[derive(Clone, Debug, Serialize)]
pub struct DriverTable {
    /// Unit of every time in it.
    pub unit: &'static str,
    /// Whether the experiment has an objective.
    pub has_objective: bool,
    /// One per cell of several drivers.
    pub cells: Vec<Group<DriverRow>>,
}

/// What each service served and used.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceTable {
    /// One per cell of several services.
    pub cells: Vec<Group<ServiceRow>>,
}

/// The rows of one cell.
#[derive(Clone, Debug, Serialize)]
pub struct Group<Row> {
    /// Such as `1000/s`.
    pub load: String,
    /// The mode.
    pub mode: &'static str,
    /// All rows in a sentence.
    pub headline: String,
    /// Slowest driver first; the service with most CPU first.
    pub rows: Vec<Row>,
}

/// A driver.
#[derive(Clone, Debug, Serialize)]
pub struct DriverRow {
    /// Its name, with its namespace where it has one.
    pub name: String,
    /// Empty in a topology of a single namespace.
    pub namespace: String,
    /// Trials that enter its estimates.
    pub valid: usize,
    /// Median response time, in the table's unit.
    pub p50: Interval,
    /// 99th percentile of the response time, in the table's unit.
    pub p99: Interval,
    /// Responses per second.
    pub completed: Interval,
    /// Failed requests and error statuses, as a percentage.
    pub errors: String,
    /// `met`, `missed` or `not shown`; why there are no figures, where there are none.
    pub objective: String,
}

/// A service.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceRow {
    /// Its name, with its namespace where it has one.
    pub name: String,
    /// Empty in a topology of a single namespace.
    pub namespace: String,
    /// Number of pods.
    pub replicas: usize,
    /// Requests per second.
    pub requests: Interval,
    /// CPU of its pods' applications, cores.
    pub cores: Interval,
}

impl DriverTable {
    /// The table of a run; absent where no cell has several drivers.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let cells: Vec<&Cell> = summary.cells.iter().filter(|cell| cell.drivers.len() > 1).collect();
        let drivers = || cells.iter().flat_map(|cell| &cell.drivers);
        let unit = TimeUnit::for_times(drivers().filter_map(|driver| Some(p99(driver)?.estimate)));
        let has_objective = drivers().any(|driver| driver.objective.is_some());
        let groups = groups(summary, &cells, |cell| (driver_headline(cell, unit), driver_rows(cell, unit)));
        (!cells.is_empty()).then_some(Self { unit: unit.symbol(), has_objective, cells: groups })
    }
}

impl ServiceTable {
    /// The table of a run; absent where no cell has several services.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let cells: Vec<&Cell> = summary.cells.iter().filter(|cell| cell.services.len() > 1).collect();
        let groups = groups(summary, &cells, |cell| (service_headline(cell), service_rows(cell)));
        (!cells.is_empty()).then_some(Self { cells: groups })
    }
}

fn groups<Row>(
    summary: &Summary,
    cells: &[&Cell],
    read: impl Fn(&Cell) -> (String, Vec<Row>),
) -> Vec<Group<Row>> {
    let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
    let group = |cell: &&Cell| {
        let (headline, rows) = read(cell);
        Group { load: labels.label(cell.conditions()), mode: Mode::name(cell.mode), headline, rows }
    };
    cells.iter().map(group).collect()
}

fn p99(driver: &DriverSummary) -> Option<Estimate> {
    driver.response_time_us.map(|times| times.p99)
}

/// Those without a figure first, then by the 99th percentile.
fn slowest_first(cell: &Cell) -> Vec<&DriverSummary> {
    let mut drivers: Vec<&DriverSummary> = cell.drivers.iter().collect();
    let time = |driver: &DriverSummary| p99(driver).map_or(f64::INFINITY, |p99| p99.estimate);
    drivers.sort_by(|one, other| time(other).total_cmp(&time(one)));
    drivers
}

fn driver_rows(cell: &Cell, unit: TimeUnit) -> Vec<DriverRow> {
    let row = |driver: &DriverSummary| {
        let times = driver.response_time_us;
        let time = |estimate: Option<Estimate>| interval(estimate, |estimate| unit.interval(estimate));
        let no_figures = times.is_none().then(|| driver.verdict.clone());
        let objective = driver.objective.map_or("", |objective| objective.name()).replace('-', " ");
        DriverRow {
            name: qualified(&driver.namespace, &driver.name),
            namespace: driver.namespace.clone(),
            valid: driver.valid,
            p50: time(times.map(|times| times.p50)),
            p99: time(times.map(|times| times.p99)),
            completed: interval(driver.rate_completed, Interval::new),
            errors: format::percent(driver.errors),
            objective: no_figures.unwrap_or(objective),
        }
    };
    slowest_first(cell).into_iter().map(row).collect()
}

/// `5 drivers: p99 0.98 to 2.31 ms, slowest tenant-5/generator; objective met by 3, missed by 1, not shown for 1`.
fn driver_headline(cell: &Cell, unit: TimeUnit) -> String {
    let mut text = format!("{} drivers", cell.drivers.len());
    let measured: Vec<(&DriverSummary, Estimate)> =
        slowest_first(cell).into_iter().filter_map(|driver| Some((driver, p99(driver)?))).collect();
    if let (Some((slowest, most)), Some((_, least))) = (measured.first(), measured.last()) {
        let (name, least) = (qualified(&slowest.namespace, &slowest.name), unit.number(least.estimate));
        text += &format!(": p99 {least} to {}, slowest {name}", unit.time(most.estimate));
    }
    let without = cell.drivers.len() - measured.len();
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

fn service_rows(cell: &Cell) -> Vec<ServiceRow> {
    let mut services: Vec<&ServiceSummary> = cell.services.iter().collect();
    let cores = |service: &ServiceSummary| service.cpu_cores.map_or(0.0, |cores| cores.estimate);
    services.sort_by(|one, other| cores(other).total_cmp(&cores(one)));
    let row = |service: &ServiceSummary| ServiceRow {
        name: qualified(&service.namespace, &service.name),
        namespace: service.namespace.clone(),
        replicas: service.replicas,
        requests: interval(service.requests_per_s, Interval::new),
        cores: interval(service.cpu_cores, format::cores_interval),
    };
    services.into_iter().map(row).collect()
}

/// `10 services: 1500 requests/s and 0.42 cores in all`.
fn service_headline(cell: &Cell) -> String {
    let sum = |read: fn(&ServiceSummary) -> Option<Estimate>| {
        let estimates = cell.services.iter().filter_map(|service| Some(read(service)?.estimate));
        estimates.reduce(|sum, next| sum + next)
    };
    let served =
        sum(|service| service.requests_per_s).map(|rate| format!("{} requests/s", format::digits(rate)));
    let used = sum(|service| service.cpu_cores).map(|cores| format!("{} cores", format::cores_number(cores)));
    let figures: Vec<String> = served.into_iter().chain(used).collect();
    let all = if figures.is_empty() { String::new() } else { format!(": {} in all", figures.join(" and ")) };
    format!("{} services{all}", cell.services.len())
}

fn interval(estimate: Option<Estimate>, read: impl Fn(&Estimate) -> Interval) -> Interval {
    let absent = || Interval { estimate: format::ABSENT.to_owned(), range: None };
    estimate.as_ref().map_or_else(absent, read)
}

/// A name with its namespace, which the names of drivers may have already.
fn qualified(namespace: &str, name: &str) -> String {
    let has_it = name.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('/'));
    if namespace.is_empty() || has_it { name.to_owned() } else { format!("{namespace}/{name}") }
}
