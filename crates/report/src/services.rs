//! Services of cells with several of them: requests, and CPU of applications and of the proxies in their
//! pods.

use crate::drivers::{Group, Rows, groups, interval, over_copies_estimate, qualified};
use crate::format::{self, Interval};
use results::{Cell, Estimate, ServiceSummary, Summary};
use serde::Serialize;
use statistics::copies::grouped;

/// Requests and CPU of each service.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceTable {
    /// True if any service has proxies in its pods.
    pub has_proxies: bool,
    /// One group per cell with several services of which something was measured.
    pub cells: Vec<Group<ServiceRow>>,
}

/// A service, or its copies in several namespaces.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceRow {
    /// Name; with its namespace if it is a single service.
    pub name: String,
    /// Namespace; empty in a topology with a single namespace, and for copies.
    pub namespace: String,
    /// Number of services in this row.
    pub copies: usize,
    /// Total number of pods.
    pub replicas: usize,
    /// Requests per second.
    pub requests: Interval,
    /// CPU of the applications in its pods, in cores.
    pub cores: Interval,
    /// CPU of the proxies in its pods, in cores.
    pub proxy_cores: Interval,
    /// CPU of applications and proxies together, in cores.
    pub total_cores: String,
}

impl ServiceTable {
    /// The table of a run; `None` if no cell has several services, or figures of them.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let is_measured =
            |service: &ServiceSummary| service.requests_per_s.is_some() || service.cpu_cores.is_some();
        let has_figures = |cell: &&Cell| cell.services.len() > 1 && cell.services.iter().any(is_measured);
        let cells: Vec<&Cell> = summary.cells.iter().filter(has_figures).collect();
        let mut services = cells.iter().flat_map(|cell| &cell.services);
        let has_proxies = services.any(|service| service.proxy_cpu_cores.is_some());
        (!cells.is_empty()).then_some(Self { has_proxies, cells: groups(summary, &cells, rows) })
    }
}

fn rows(cell: &Cell) -> Rows<ServiceRow> {
    let mut all: Vec<&ServiceSummary> = cell.services.iter().collect();
    all.sort_by(|one, other| total(other).total_cmp(&total(one)));
    let mut copies = grouped(all.iter().copied(), |service| service.name.clone());
    let sum = |services: &[&ServiceSummary]| services.iter().map(|service| total(service)).sum::<f64>();
    copies.sort_by(|(_, one), (_, other)| sum(other).total_cmp(&sum(one)));
    let copies = copies.iter().map(|(_, services)| row(services)).collect();
    let all = all.iter().map(|service| row(&[service])).collect();
    Rows::new(headline(cell), all, copies, "with most CPU")
}

/// CPU of application and proxies in cores.
fn total(service: &ServiceSummary) -> f64 {
    [service.cpu_cores, service.proxy_cpu_cores].iter().flatten().map(|cores| cores.estimate).sum()
}

fn row(services: &[&ServiceSummary]) -> ServiceRow {
    let figure = |read: fn(&ServiceSummary) -> Option<Estimate>, text: fn(&Estimate) -> Interval| {
        interval(over_copies_estimate(services.iter().map(|service| read(service))), text)
    };
    let measured = services.iter().any(|service| service.cpu_cores.is_some());
    let (name, namespace) = match services {
        [only] => (qualified(&only.namespace, &only.name), only.namespace.clone()),
        copies => (copies.first().map(|service| service.name.clone()).unwrap_or_default(), String::new()),
    };
    let total_cores: f64 = services.iter().map(|service| total(service)).sum();
    ServiceRow {
        name,
        namespace,
        copies: services.len(),
        replicas: services.iter().map(|service| service.replicas).sum(),
        requests: figure(|service| service.requests_per_s, Interval::new),
        cores: figure(|service| service.cpu_cores, format::cores_interval),
        proxy_cores: figure(|service| service.proxy_cpu_cores, format::cores_interval),
        total_cores: if measured { format::cores_number(total_cores) } else { format::ABSENT.to_owned() },
    }
}

/// `10 services: 1500 requests/s, 0.42 cores and 0.61 cores of their proxies in all`.
fn headline(cell: &Cell) -> String {
    let sum = |read: fn(&ServiceSummary) -> Option<Estimate>| {
        let estimates = cell.services.iter().filter_map(|service| Some(read(service)?.estimate));
        estimates.reduce(|sum, next| sum + next)
    };
    let cores = |cores: f64| format::with_unit(&format::cores_number(cores), "cores");
    let served =
        sum(|service| service.requests_per_s).map(|rate| format!("{} requests/s", format::digits(rate)));
    let used = sum(|service| service.cpu_cores).map(cores);
    let by_proxies = sum(|service| service.proxy_cpu_cores)
        .map(|used| format!("{} of the proxies in their pods", cores(used)));
    let figures: Vec<String> = served.into_iter().chain(used).chain(by_proxies).collect();
    let all = match figures.split_last() {
        None => String::new(),
        Some((only, [])) => format!(": {only} in all"),
        Some((last, rest)) => format!(": {} and {last} in all", rest.join(", ")),
    };
    format!("{} services{all}", cell.services.len())
}
