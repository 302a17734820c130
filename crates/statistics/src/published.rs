//! Figures that others published for the same question, beside this run's own.

use crate::findings::words;
use experiment::Mode;
use experiment::schema::{Cell, ComponentSummary, PublishedFigure, Role, Summary};
use experiment::units::format_size;

/// Istio's own figures (Istio 1.24, "Performance and Scalability", <https://istio.io/v1.24/docs/ops/deployment/performance-and-scalability/>):
/// 1000 HTTP requests a second, 1 KB payload, 2 worker threads.
const SOURCE: &str = "Istio 1.24, performance and scalability";
const REFERENCE_RATE: f64 = 1000.0;
const DIFFERS: &str = "here: upstream Envoy with static configuration, without Istio's telemetry filters and istiod, all on \
                       this one machine; there: Istio's own proxy, configured by istiod, on other hardware";

/// What a reader will want to compare this run with. Only where the run has the same case.
pub(crate) fn figures(summary: &Summary) -> Vec<PublishedFigure> {
    let Some(cell) = summary.cells.iter().find(|cell| is_reference(cell)) else { return Vec::new() };
    let proxies: Vec<&ComponentSummary> =
        cell.components.iter().filter(|component| component.role == Role::Proxy).collect();
    if proxies.is_empty() {
        return Vec::new();
    }
    let each = |value: &dyn Fn(&ComponentSummary) -> Option<String>| {
        let values: Vec<String> =
            proxies.iter().filter_map(|proxy| Some(format!("{} {}", proxy.name, value(proxy)?))).collect();
        (!values.is_empty()).then(|| values.join(", "))
    };
    let payload_bytes = cell.load.payload_bytes;
    let differs = match payload_bytes {
        1000..=1024 => DIFFERS.to_owned(),
        _ => format!("{DIFFERS}; the payload here is {}", format_size(payload_bytes)),
    };
    let figure = |what: &str, value: &str, measured| PublishedFigure {
        source: SOURCE.into(),
        what: what.into(),
        value: value.into(),
        measured,
        differs: differs.clone(),
    };
    vec![
        figure(
            "CPU of a sidecar at 1000 requests/s, 1 KB, 2 workers",
            "0.20 vCPU",
            each(&|proxy| Some(words::cores(&proxy.cpu_cores))),
        ),
        figure(
            "memory of a sidecar at 1000 requests/s, 1 KB, 2 workers",
            "60 MB",
            each(&|proxy| Some(words::memory(&proxy.memory_bytes?))),
        ),
    ]
}

fn is_reference(cell: &Cell) -> bool {
    cell.mode == Mode::Sidecar && cell.valid > 0 && cell.load.rate == Some(REFERENCE_RATE)
}
