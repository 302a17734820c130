//! Services of cells with several of them: requests, and CPU of applications and of the proxies in their
//! pods.

use crate::drivers::{groups, over_copies_estimate, qualified};
use crate::format::{self, Interval};
use crate::tables::{Column, Group, Table, TableCell, TableRow};
use results::{Cell, Estimate, Role, ServiceSummary, Summary};
use serde::Serialize;
use statistics::copies::grouped;

/// Requests and CPU of each service.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceTable {
    /// True if any service has proxies in its pods.
    pub has_proxies: bool,
    /// One group per cell with several services of which something was measured.
    pub table: Table,
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
        let mut columns = vec![
            Column::only_terminal("service"),
            Column::name("Service"),
            Column::number("Copies").of_copies(),
            Column::text("Namespace"),
            Column::number("Pods").terminal("pods"),
            Column::number("Requests/s").terminal("requests/s"),
            Column::number("CPU").terminal("CPU, cores"),
        ];
        if has_proxies {
            columns.push(Column::number("CPU of proxies").terminal("proxies, cores"));
            columns.push(Column::number("In all").terminal("in all"));
        }
        let table = Table { columns, groups: groups(summary, &cells, group) };
        (!cells.is_empty()).then_some(Self { has_proxies, table })
    }
}

fn group(cell: &Cell, place: String) -> Group {
    let mut all: Vec<&ServiceSummary> = cell.services.iter().collect();
    all.sort_by(|one, other| total(other).total_cmp(&total(one)));
    let mut copies = grouped(all.iter().copied(), |service| service.name.clone());
    let sum = |services: &[&ServiceSummary]| services.iter().map(|service| total(service)).sum::<f64>();
    copies.sort_by(|(_, one), (_, other)| sum(other).total_cmp(&sum(one)));
    let copies = copies.iter().map(|(_, services)| row(services)).collect();
    let all = all.iter().map(|service| row(&[service])).collect();
    Group::selected(place, headline(cell), all, copies, "with most CPU")
}

/// CPU of application and proxies in cores.
fn total(service: &ServiceSummary) -> f64 {
    [service.cpu_cores, service.proxy_cpu_cores].iter().flatten().map(|cores| cores.estimate).sum()
}

/// A service, or its copies in several namespaces. Rows without proxies have cells for them that no column shows.
fn row(services: &[&ServiceSummary]) -> TableRow {
    let figure = |read: fn(&ServiceSummary) -> Option<Estimate>, text: fn(&Estimate) -> Interval| {
        TableCell::figure(over_copies_estimate(services.iter().map(|service| read(service))), text)
    };
    let measured = services.iter().any(|service| service.cpu_cores.is_some());
    let (name, namespace) = match services {
        [only] => (qualified(&only.namespace, &only.name), only.namespace.clone()),
        copies => (copies.first().map(|service| service.name.clone()).unwrap_or_default(), String::new()),
    };
    let in_all = match services {
        [one] => one.total_cpu_cores.or(one.cpu_cores.filter(|_| one.proxy_cpu_cores.is_none())),
        _ => None,
    };
    let total_cores: f64 = services.iter().map(|service| total(service)).sum();
    vec![
        with_copies(name.clone(), services.len()).into(),
        name.into(),
        services.len().into(),
        namespace.into(),
        services.iter().map(|service| service.replicas).sum::<usize>().into(),
        figure(|service| service.requests_per_s, Interval::new),
        figure(|service| service.cpu_cores, format::cores_interval),
        figure(|service| service.proxy_cpu_cores, format::cores_interval),
        match (in_all, measured) {
            (Some(_), _) => TableCell::figure(in_all, format::cores_interval),
            (None, true) => format::cores_number(total_cores).into(),
            (None, false) => format::ABSENT.into(),
        },
    ]
}

/// `web ×5`, or the name of a single one.
pub(crate) fn with_copies(name: String, copies: usize) -> String {
    if copies == 1 { name } else { format!("{name} ×{copies}") }
}

/// `10 services: 1500 requests/s, 0.42 cores and 0.61 cores of the proxies in their pods in all; 0.65 cores of all 11 proxies`.
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
    format!("{} services{all}{}", cell.services.len(), elsewhere(cell))
}

/// Sum of all proxies of a cell, where pods that are no services have some of them, such as a client's; otherwise empty.
fn elsewhere(cell: &Cell) -> String {
    let in_pods = cell.services.iter().filter_map(|service| Some(service.proxy_cpu_cores?.estimate));
    let Some(in_pods) = in_pods.reduce(|sum, next| sum + next) else { return String::new() };
    let Some(total) = cell.total(Role::Proxy) else { return String::new() };
    let (all, of_services) = (format::cores(total.cpu_cores.estimate), format::cores(in_pods));
    if all == of_services { String::new() } else { format!("; {all} of all {} proxies", total.components) }
}
