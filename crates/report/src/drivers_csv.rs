//! Drivers, services and calls between services as CSV: a header line, then one line per driver, service or
//! edge of each cell.
//!
//! Estimates have four columns: the estimate, `_low` and `_high` of the 95 % confidence interval, and `_n`,
//! the number of trials. A field is empty if there is no such figure. A percentile that falls among requests
//! without a response is `inf`; its `_low` is the minimum time that these have waited. Times are in
//! microseconds.

use crate::csv_fields::{estimate_fields, factor_fields, line, load_fields, n_field, percentile_fields};
use results::{Cell, DriverSummary, EdgeSummary, Estimate, Percentiles, ServiceSummary, Summary, TimeFigure};

/// Table of the drivers of a run.
#[must_use]
pub fn drivers(summary: &Summary) -> String {
    table(summary, |cell| cell.drivers.iter().map(driver).collect())
}

/// Table of the services of a run.
#[must_use]
pub fn services(summary: &Summary) -> String {
    table(summary, |cell| cell.services.iter().map(service).collect())
}

/// Table of the calls between the services of a run.
#[must_use]
pub fn edges(summary: &Summary) -> String {
    table(summary, |cell| cell.edges.iter().map(edge).collect())
}

type Fields = Vec<(String, String)>;

fn table(summary: &Summary, rows: impl Fn(&Cell) -> Vec<Fields>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for cell in &summary.cells {
        for row in rows(cell) {
            let fields: Fields =
                load_fields(cell).into_iter().chain(row).chain(factor_fields(cell)).collect();
            if lines.is_empty() {
                lines.push(line(fields.iter().map(|(name, _)| name.clone())));
            }
            lines.push(line(fields.into_iter().map(|(_, value)| value)));
        }
    }
    lines.concat()
}

fn driver(driver: &DriverSummary) -> Fields {
    let times = driver.response_time_us;
    let objective = driver.objective.map_or("", |objective| objective.name());
    let mut fields = texts([
        ("driver", driver.name.clone()),
        ("namespace", driver.namespace.clone()),
        ("target", driver.target.clone()),
        ("driver_valid_trials", driver.valid.to_string()),
        ("verdict", driver.verdict.clone()),
        ("objective", objective.to_owned()),
        ("errors", driver.errors.to_string()),
    ]);
    fields.extend(percentiles(times));
    fields.extend(counted("rate_completed", driver.rate_completed));
    fields
}

fn service(service: &ServiceSummary) -> Fields {
    let mut fields = texts([
        ("service", service.name.clone()),
        ("namespace", service.namespace.clone()),
        ("replicas", service.replicas.to_string()),
    ]);
    fields.extend(counted("requests_per_s", service.requests_per_s));
    fields.extend(counted("cpu_cores", service.cpu_cores));
    fields.extend(counted("proxy_cpu_cores", service.proxy_cpu_cores));
    fields
}

fn edge(edge: &EdgeSummary) -> Fields {
    let mut fields = texts([
        ("from", edge.from.clone()),
        ("to", edge.to.clone()),
        ("proven", edge.proven.to_string()),
        ("errors", edge.errors.to_string()),
    ]);
    fields.extend(counted("requests_per_s", edge.requests_per_s));
    fields.extend(percentiles(edge.response_time_us));
    fields
}

fn percentiles(times: Option<Percentiles>) -> Fields {
    [
        ("p50_us", TimeFigure::P50),
        ("p90_us", TimeFigure::P90),
        ("p99_us", TimeFigure::P99),
        ("p99.9_us", TimeFigure::P99_9),
    ]
    .into_iter()
    .flat_map(|(name, figure)| {
        let n = n_field(name, times.and_then(|times| times.figure(figure)));
        percentile_fields(name, times.as_ref(), figure).into_iter().chain([n])
    })
    .collect()
}

fn texts<const N: usize>(fields: [(&str, String); N]) -> Fields {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An estimate, its interval and its number of trials, which is empty if an older result lacks it.
fn counted(name: &str, estimate: Option<Estimate>) -> impl Iterator<Item = (String, String)> {
    estimate_fields(name, estimate).into_iter().chain([n_field(name, estimate)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{DriverObjective, Percentiles};

    fn summary() -> Summary {
        let text = include_str!("../tests/fixture/summary.json");
        let mut summary: Summary = serde_json::from_str(text).expect("the kept summary is good");
        assert!(summary.cells[0].drivers.is_empty(), "it was made before there were several");
        let estimate = Estimate { estimate: 200.5, low: Some(190.0), high: None, n: 4 };
        let [p50, p99] = [estimate, Estimate { n: 0, ..estimate }];
        let times = Percentiles {
            mean: None,
            p50: Some(p50),
            p75: None,
            p90: Some(p50),
            p95: None,
            p99: Some(p99),
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
            })
            .into();
        summary.cells[0].services = vec![ServiceSummary {
            name: "web".to_owned(),
            namespace: "a".to_owned(),
            replicas: 2,
            requests_per_s: Some(p50),
            cpu_cores: None,
            proxy_cpu_cores: Some(p50),
        }];
        summary.cells[0].edges = vec![EdgeSummary {
            from: "a/web".to_owned(),
            to: "a/list".to_owned(),
            requests_per_s: Some(p50),
            response_time_us: Some(times),
            errors: 0.25,
            proven: true,
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
        assert_eq!(columns(&table, &["p99_us", "p99_us_n"], 1), ["200.5", ""], "n of an older result");
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
    fn older_summaries_have_empty_tables() {
        let text = include_str!("../tests/fixture/summary.json");
        let older: Summary = serde_json::from_str(text).expect("the kept summary is good");
        assert_eq!((drivers(&older), services(&older)), (String::new(), String::new()));
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
