//! CPU and memory of all sidecars together, as kubelets report their containers (cAdvisor).

use super::AnswerError;
use super::istio::Query;
use crate::telemetry::Telemetry;

const CPU: &str = "container_cpu_usage_seconds_total";
const MEMORY: &str = "container_memory_working_set_bytes";
/// Gateways and waypoints have containers of the same name.
const SIDECARS: &str = "{container=\"istio-proxy\", pod!~\".*(gateway|waypoint).*\"}";

/// Queries of a period that ends at the time of the query.
pub(super) fn queries(range_s: u64) -> [Query; 2] {
    let of_metric = |(name, function, purpose): (&'static str, &str, &'static str)| {
        let sum = format!("sum({function}({name}{SIDECARS}[{range_s}s])) > 0");
        Query::new(purpose, name, range_s, &sum)
    };
    [(CPU, "increase", "CPU of sidecars"), (MEMORY, "avg_over_time", "memory of sidecars")].map(of_metric)
}

/// The metric of a row that answers one of these queries.
pub(super) fn metric(name: &str) -> Option<&'static str> {
    [CPU, MEMORY].into_iter().find(|own| *own == name)
}

/// Takes the value of a row. Each query has one row as its result.
pub(super) fn take(
    telemetry: &mut Telemetry,
    metric: &'static str,
    value: f64,
    range_s: f64,
) -> Result<(), AnswerError> {
    *telemetry.rows.entry(metric).or_default() += 1;
    let (usage, value) = match metric {
        CPU => (&mut telemetry.sidecar_cpu_cores, value / range_s),
        _ => (&mut telemetry.sidecar_memory_bytes, value),
    };
    match usage.replace(value) {
        None => Ok(()),
        Some(_) => Err(AnswerError::Twice(metric)),
    }
}
