//! Drivers, services and calls between services as CSV: one line per driver, service or edge of each cell
//! ([`crate::csv_fields`]).

use crate::csv_fields::{self, Fields};
use results::{Cell, DriverSummary, EdgeSummary, Figure, ServiceSummary, Summary};

/// Percentiles of drivers and edges.
const TIMES: [Figure; 4] = [Figure::P50, Figure::P90, Figure::P99, Figure::P99_9];

/// Table of the drivers of a run.
#[must_use]
pub fn drivers(summary: &Summary) -> String {
    table(summary, |cell| &cell.drivers, driver)
}

/// Table of the services of a run.
#[must_use]
pub fn services(summary: &Summary) -> String {
    table(summary, |cell| &cell.services, service)
}

/// Table of the calls between the services of a run.
#[must_use]
pub fn edges(summary: &Summary) -> String {
    table(summary, |cell| &cell.edges, edge)
}

fn table<T>(summary: &Summary, of: fn(&Cell) -> &Vec<T>, row: fn(Fields, &T) -> Fields) -> String {
    let cells = summary.cells.iter();
    csv_fields::table(cells.flat_map(|cell| of(cell).iter().map(move |one| row(Fields::of_cell(cell), one))))
}

fn driver(fields: Fields, driver: &DriverSummary) -> Fields {
    fields
        .text("driver", &driver.name)
        .text("namespace", &driver.namespace)
        .text("target", &driver.target)
        .text("driver_valid_trials", driver.valid)
        .text("verdict", &driver.verdict)
        .text("objective", driver.objective.map_or("", |objective| objective.name()))
        .text("errors", driver.errors)
        .times(&TIMES, driver.response_time_us.as_ref())
        .estimate("rate_completed", driver.rate_completed)
}

fn service(fields: Fields, service: &ServiceSummary) -> Fields {
    fields
        .text("service", &service.name)
        .text("namespace", &service.namespace)
        .text("replicas", service.replicas)
        .estimate("requests_per_s", service.requests_per_s)
        .estimate("cpu_cores", service.cpu_cores)
        .estimate("proxy_cpu_cores", service.proxy_cpu_cores)
}

fn edge(fields: Fields, edge: &EdgeSummary) -> Fields {
    fields
        .text("from", &edge.from)
        .text("to", &edge.to)
        .text("proven", edge.proven)
        .text("errors", edge.errors)
        .estimate("requests_per_s", edge.requests_per_s)
        .times(&TIMES, edge.response_time_us.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{DisturbedFigures, DriverObjective, Estimate, Percentiles};

    fn summary() -> Summary {
        let text = include_str!("../tests/fixture/summary.json");
        let mut summary: Summary = serde_json::from_str(text).expect("the kept summary is good");
        let estimate = Estimate { estimate: 200.5, low: Some(190.0), high: None, n: 4, alone: None };
        let p50 = estimate;
        let times = Percentiles {
            mean: None,
            p50: Some(p50),
            p75: None,
            p90: Some(p50),
            p95: None,
            p99: Some(p50),
            p99_9: Some(p50),
            p99_99: None,
            max: None,
            censored: None,
        };
        summary.cells[0].drivers = ["a", "b"]
            .map(|name| DriverSummary {
                name: format!("{name}/generator"),
                namespace: name.to_owned(),
                target: format!("{name}/web"),
                valid: 4,
                verdict: "valid".to_owned(),
                response_time_us: (name == "a").then_some(times),
                rate_completed: Some(p50),
                errors: 0.0,
                errors_high: None,
                objective: Some(DriverObjective::NotShown),
                disturbed: DisturbedFigures::new(),
            })
            .into();
        summary.cells[0].services = vec![ServiceSummary {
            name: "web".to_owned(),
            namespace: "a".to_owned(),
            replicas: 2,
            requests_per_s: Some(p50),
            cpu_cores: None,
            proxy_cpu_cores: Some(p50),
            total_cpu_cores: None,
            disturbed: DisturbedFigures::new(),
        }];
        summary.cells[0].edges = vec![EdgeSummary {
            from: "a/web".to_owned(),
            to: "a/list".to_owned(),
            requests_per_s: Some(p50),
            response_time_us: Some(times),
            errors: 0.25,
            proven: true,
            disturbed: DisturbedFigures::new(),
        }];
        summary
    }

    fn columns(table: &str, names: &[&str], line: usize) -> Vec<String> {
        let fields = |line: usize| table.lines().nth(line).unwrap().split(',').collect::<Vec<_>>();
        let position = |name: &&str| fields(0).iter().position(|field| field == name).expect("a column");
        names.iter().map(|name| fields(line)[position(name)].to_owned()).collect()
    }

    #[test]
    fn each_driver_has_a_line_with_its_estimates() {
        let table = drivers(&summary());
        assert_eq!(table.lines().count(), 3);
        let names =
            ["mode", "driver", "namespace", "objective", "p50_us", "p50_us_low", "p50_us_high", "p50_us_n"];
        assert_eq!(
            columns(&table, &names, 1),
            ["none", "a/generator", "a", "not-shown", "200.5", "190", "", "4"]
        );
        assert_eq!(columns(&table, &["p50_us", "p50_us_n", "rate_completed"], 2), ["", "", "200.5"]);
        let fields = table.lines().map(|line| line.split(',').count()).collect::<Vec<_>>();
        assert!(fields.iter().all(|count| *count == fields[0]), "{table}");
    }

    #[test]
    fn each_service_has_a_line() {
        let table = services(&summary());
        let names = [
            "service",
            "namespace",
            "replicas",
            "requests_per_s",
            "requests_per_s_n",
            "cpu_cores",
            "proxy_cpu_cores",
        ];
        assert_eq!(columns(&table, &names, 1), ["web", "a", "2", "200.5", "4", "", "200.5"]);
        assert_eq!(table.lines().count(), 2);
    }

    #[test]
    fn each_edge_has_a_line() {
        let table = edges(&summary());
        let names = ["from", "to", "proven", "errors", "requests_per_s", "p50_us", "p50_us_n", "p99_us_low"];
        assert_eq!(
            columns(&table, &names, 1),
            ["a/web", "a/list", "true", "0.25", "200.5", "200.5", "4", "190"]
        );
        assert_eq!(table.lines().count(), 2);
    }
}
