//! Response times, throughput and what each mode adds, as CSV: a header line, then one line per cell.
//!
//! Estimates have three columns: the estimate, then `_low` and `_high` of the 95 % confidence interval. A
//! field is empty if there is no such figure. A percentile that falls among requests without a response is
//! `inf`; its `_low` is the minimum time that these have waited. Times are in microseconds. `NAME_n` is the
//! number of trials of an estimate; `spoiled` gives the reason if these are not all trials. Runs with fleets
//! have the fleet figures after all others; a time that some proxy never reached is empty.

use crate::csv_fields::{estimate_fields, factor_fields, line, load_fields, n_field, percentile_fields};
use crate::marks;
use crate::table::throughput_change;
use results::{Cell, Estimate, FleetSummary, FleetTimes, Role, Summary, TimeFigure};

/// Response times in the table, with their column names.
const TIMES: [(&str, TimeFigure); 6] = [
    ("mean_us", TimeFigure::Mean),
    ("p50_us", TimeFigure::P50),
    ("p90_us", TimeFigure::P90),
    ("p95_us", TimeFigure::P95),
    ("p99_us", TimeFigure::P99),
    ("p99.9_us", TimeFigure::P99_9),
];

/// The table of a run; empty if it has no cell.
#[must_use]
pub fn table(summary: &Summary) -> String {
    let rows: Vec<Vec<(String, String)>> = summary.cells.iter().map(|cell| fields(summary, cell)).collect();
    let Some(first) = rows.first() else { return String::new() };
    let names = line(first.iter().map(|(name, _)| name.clone()));
    rows.iter().fold(names, |text, row| text + &line(row.iter().map(|(_, value)| value.clone())))
}

fn fields(summary: &Summary, cell: &Cell) -> Vec<(String, String)> {
    let mut fields = load_fields(cell);
    fields.push(("trials".to_owned(), cell.trials.to_string()));
    fields.push(("verdict".to_owned(), cell.verdict.clone()));
    fields.push(("errors".to_owned(), cell.errors.to_string()));
    let (times, added) = (cell.response_time_us, cell.added_us);
    let total = |role: Role| cell.totals.iter().find(|total| total.role == role).copied();
    let (proxies, control_plane) = (total(Role::Proxy), total(Role::ControlPlane));
    for (name, figure) in TIMES {
        fields.extend(percentile_fields(name, times.as_ref(), figure));
    }
    let estimates: [(&str, Option<Estimate>); 10] = [
        ("added_p50_us", added.and_then(|added| added.p50)),
        ("added_p90_us", added.and_then(|added| added.p90)),
        ("added_p99_us", added.and_then(|added| added.p99)),
        ("rate_completed", cell.rate_completed),
        ("throughput_change", throughput_change(summary, cell).map(|(change, _)| change)),
        ("proxies_cpu_cores", proxies.map(|total| total.cpu_cores)),
        ("proxies_cpu_cores_per_1000_rps", proxies.map(|total| total.cpu_cores_per_1000_rps)),
        ("proxies_memory_bytes", proxies.and_then(|total| total.memory_bytes)),
        ("control_plane_cpu_cores", control_plane.map(|total| total.cpu_cores)),
        ("control_plane_memory_bytes", control_plane.and_then(|total| total.memory_bytes)),
    ];
    fields.extend(estimates.iter().flat_map(|(name, estimate)| estimate_fields(name, *estimate)));
    // After all columns of earlier versions, since some readers go by position.
    fields.push(("retaken_trials".to_owned(), cell.retakes.to_string()));
    fields.extend(factor_fields(cell));
    fields.extend(TIMES.map(|(name, figure)| n_field(name, times.and_then(|times| times.figure(figure)))));
    fields.extend(estimates.map(|(name, estimate)| n_field(name, estimate)));
    fields.push(("spoiled".to_owned(), marks::spoiled(cell)));
    if summary.cells.iter().any(|cell| cell.fleet.is_some()) {
        fields.extend(fleet_fields(cell.fleet.as_ref()));
    }
    fields
}

/// Figures of a fleet, for runs that have fleets.
fn fleet_fields(fleet: Option<&FleetSummary>) -> Vec<(String, String)> {
    let count =
        |read: fn(&FleetSummary) -> u64| fleet.map_or_else(String::new, |fleet| read(fleet).to_string());
    let mut fields = vec![
        ("fleet_proxies".to_owned(), count(|fleet| fleet.proxies)),
        ("fleet_never".to_owned(), count(|fleet| fleet.never)),
        ("fleet_rejections".to_owned(), count(|fleet| fleet.rejections)),
    ];
    let times = |read: fn(&FleetSummary) -> &FleetTimes, name: &str| {
        let times = fleet.map(read);
        let figures = [
            ("p50", times.and_then(|times| times.p50)),
            ("p90", times.and_then(|times| times.p90)),
            ("p99", times.and_then(|times| times.p99)),
            ("last", times.and_then(|times| times.last)),
        ];
        figures.map(|(figure, estimate)| (format!("{name}_{figure}_us"), estimate))
    };
    let of = |read: fn(&FleetSummary) -> Option<Estimate>| fleet.and_then(read);
    let others = [
        ("fleet_bytes_per_proxy", of(|fleet| fleet.bytes_per_proxy)),
        ("fleet_pushes_per_proxy", of(|fleet| fleet.pushes_per_proxy)),
        ("istiod_cpu_s", of(|fleet| fleet.istiod_cpu_s)),
        ("istiod_cpu_cores", of(|fleet| fleet.istiod_cpu_cores)),
        ("istiod_cpu_connecting_s", of(|fleet| fleet.istiod_cpu_connecting_s)),
        ("istiod_cpu_changing_s", of(|fleet| fleet.istiod_cpu_changing_s)),
        ("istiod_memory_bytes", of(|fleet| fleet.istiod_memory_bytes)),
        ("api_cpu_s", of(|fleet| fleet.api_cpu_s)),
        ("fleet_cpu_cores", of(|fleet| fleet.fleet_cpu_cores)),
        ("fleet_memory_bytes", of(|fleet| fleet.fleet_memory_bytes)),
        ("fleet_lag_p99_us", of(|fleet| fleet.fleet_lag_p99_us)),
    ];
    let estimates = times(|fleet| &fleet.first_configuration_us, "first_configuration")
        .into_iter()
        .chain(times(|fleet| &fleet.convergence_us, "convergence"))
        .chain(others.map(|(name, estimate)| (name.to_owned(), estimate)));
    for (name, estimate) in estimates {
        fields.extend(estimate_fields(&name, estimate));
        fields.push(n_field(&name, estimate));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        serde_json::from_str(include_str!("../tests/fixture/summary.json")).expect("the kept summary is good")
    }

    #[test]
    fn each_cell_has_a_line_with_a_field_per_column() {
        let summary = summary();
        let text = table(&summary);
        let names: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        assert_eq!(text.lines().count(), summary.cells.len() + 1);
        assert!(text.lines().all(|line| line.split(',').count() == names.len()), "{text}");
        let column = names.iter().position(|name| *name == "p99_us").unwrap();
        let p99 = summary.cells[0].response_time_us.unwrap().p99.unwrap().estimate.to_string();
        assert_eq!(text.lines().nth(1).unwrap().split(',').nth(column), Some(p99.as_str()));
    }

    #[test]
    fn run_with_fleets_has_fleet_fields_in_every_line() {
        let mut summary = summary();
        let bytes_per_proxy = Some(Estimate::single(2000.0));
        summary.cells[0].fleet =
            Some(FleetSummary { proxies: 7, bytes_per_proxy, ..FleetSummary::default() });
        let text = table(&summary);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        let field = |name: &str| lines[1][lines[0].iter().position(|field| *field == name).unwrap()];
        assert_eq!((field("fleet_proxies"), field("fleet_bytes_per_proxy")), ("7", "2000"));
        assert_eq!((field("fleet_bytes_per_proxy_n"), field("convergence_p99_us")), ("1", ""));
        assert_eq!(summary.cells.len() + 1, lines.len());
    }

    #[test]
    fn run_without_cells_has_empty_table() {
        assert_eq!(table(&Summary { cells: Vec::new(), ..summary() }), "");
    }
}
