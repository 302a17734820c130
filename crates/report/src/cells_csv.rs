//! Response times, throughput and what each mode adds, as CSV: one line per cell ([`crate::csv_fields`]).
//!
//! `spoiled` says why an estimate is not of all trials. Runs with streams have their figures after all others, and those with fleets theirs; a time
//! that some proxy never reached is empty.

use crate::csv_fields::{self, Fields, optional};
use crate::marks;
use crate::table::throughput_change;
use results::{
    Cell, Clock, Estimate, Figure, FleetSummary, FleetTimes, Metric, Role, RoleTotal, StreamSummary, Summary,
};

/// Response times in the table.
const TIMES: [Figure; 6] = [Figure::Mean, Figure::P50, Figure::P90, Figure::P95, Figure::P99, Figure::P99_9];

/// Metrics of a fleet, with their columns.
const OF_FLEET: [(&str, Metric); 11] = [
    ("fleet_bytes_per_proxy", Metric::BytesPerProxy),
    ("fleet_pushes_per_proxy", Metric::PushesPerProxy),
    ("istiod_cpu_s", Metric::IstiodCpuS),
    ("istiod_cpu_cores", Metric::IstiodCpuCores),
    ("istiod_cpu_connecting_s", Metric::IstiodCpuConnectingS),
    ("istiod_cpu_changing_s", Metric::IstiodCpuChangingS),
    ("istiod_memory_bytes", Metric::IstiodMemoryBytes),
    ("api_cpu_s", Metric::ApiCpuS),
    ("fleet_cpu_cores", Metric::FleetCpuCores),
    ("fleet_memory_bytes", Metric::FleetMemoryBytes),
    ("fleet_lag_p99_us", Metric::FleetLagP99Us),
];

/// The table of a run; empty if it has no cell.
#[must_use]
pub fn table(summary: &Summary) -> String {
    csv_fields::table(summary.cells.iter().map(|cell| fields(summary, cell)))
}

fn fields(summary: &Summary, cell: &Cell) -> Fields {
    let added = cell.added_us;
    let of = |role: Role, read: fn(&RoleTotal) -> Option<Estimate>| cell.total(role).and_then(read);
    let fields = Fields::of_cell(cell)
        .text("trials", cell.trials)
        .text("retaken_trials", cell.retakes)
        .text("verdict", &cell.verdict)
        .text("spoiled", marks::spoiled(cell))
        .text("errors", cell.errors)
        .times(&TIMES, cell.response_time_us.as_ref())
        .estimate("added_p50_us", added.and_then(|added| added.p50))
        .estimate("added_p90_us", added.and_then(|added| added.p90))
        .estimate("added_p99_us", added.and_then(|added| added.p99))
        .estimate("rate_completed", cell.rate_completed)
        .estimate("throughput_change", throughput_change(summary, cell).map(|(change, _)| change))
        .estimate("proxies_cpu_cores", of(Role::Proxy, |total| Some(total.cpu_cores)))
        .estimate(
            "proxies_cpu_cores_per_1000_rps",
            of(Role::Proxy, |total| Some(total.cpu_cores_per_1000_rps)),
        )
        .estimate("proxies_memory_bytes", of(Role::Proxy, |total| total.memory_bytes))
        .estimate("control_plane_cpu_cores", of(Role::ControlPlane, |total| Some(total.cpu_cores)))
        .estimate("control_plane_memory_bytes", of(Role::ControlPlane, |total| total.memory_bytes));
    let fields = match summary.cells.iter().any(|cell| cell.streams.is_some()) {
        true => with_streams(fields, cell),
        false => fields,
    };
    match summary.cells.iter().any(|cell| cell.fleet.is_some()) {
        true => with_fleet(fields, cell.fleet.as_ref()),
        false => fields,
    }
}

/// Adds the figures of streams, for runs that have streams.
fn with_streams(fields: Fields, cell: &Cell) -> Fields {
    let fields = [Clock::FirstEvent, Clock::EventGap].into_iter().fold(fields, |fields, clock| {
        let metrics = Metric::of_clock(clock);
        let fields = metrics.fold(fields, |fields, metric| {
            let times = cell.times(clock);
            fields.estimate(metric.key(), times.and_then(|times| times.figure(metric.spoiled_by())))
        });
        [Figure::P50, Figure::P90, Figure::P99].into_iter().fold(fields, |fields, figure| {
            let name =
                clock.metric(figure).map_or_else(String::new, |metric| format!("added_{}", metric.key()));
            fields.estimate(&name, cell.added(clock).and_then(|added| added.difference(figure)))
        })
    });
    StreamSummary::METRICS.into_iter().fold(fields, |fields, metric| {
        fields.estimate(metric.key(), cell.streams.as_ref().and_then(|streams| streams.estimates.get(metric)))
    })
}

/// Adds the figures of a fleet, for runs that have fleets.
fn with_fleet(fields: Fields, fleet: Option<&FleetSummary>) -> Fields {
    let count = |read: fn(&FleetSummary) -> u64| optional(fleet.map(read));
    let fields = fields
        .text("fleet_proxies", count(|fleet| fleet.proxies))
        .text("fleet_never", count(|fleet| fleet.never))
        .text("fleet_rejections", count(|fleet| fleet.rejections));
    let times = |fields: Fields, name: &str, times: Option<&FleetTimes>| {
        fields
            .estimate(&format!("{name}_p50_us"), times.and_then(|times| times.p50))
            .estimate(&format!("{name}_p90_us"), times.and_then(|times| times.p90))
            .estimate(&format!("{name}_p99_us"), times.and_then(|times| times.p99))
            .estimate(&format!("{name}_last_us"), times.and_then(|times| times.last))
    };
    let fields = times(fields, "first_configuration", fleet.map(|fleet| &fleet.first_configuration_us));
    let fields = times(fields, "convergence", fleet.map(|fleet| &fleet.convergence_us));
    OF_FLEET.into_iter().fold(fields, |fields, (name, metric)| {
        fields.estimate(name, fleet.and_then(|fleet| fleet.estimates.get(metric)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Estimates;

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
        let estimates = Estimates::read([Metric::BytesPerProxy], |_| Some(Estimate::single(2000.0)));
        summary.cells[0].fleet = Some(FleetSummary { proxies: 7, estimates, ..FleetSummary::default() });
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
