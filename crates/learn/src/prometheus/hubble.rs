//! Metrics of HTTP that Cilium's Hubble has (docs.cilium.io, "Monitoring & Metrics"), with `labelsContext` of workloads and
//! namespaces: without these, a row has no ends. `httpV2` counts requests with their status, `http` responses beside them.

use super::answer::Labels;
use super::vocabulary::{Call, Metric, Named, Part, Vocabulary};
use crate::dialect::Dialect;
use crate::is_error_status;
use crate::telemetry::Reporter;

const METRICS: [Named; 5] = [
    ("hubble_http_requests_total", Metric::Requests, "status", "Cilium: rates, errors"),
    ("hubble_http_responses_total", Metric::Responses, "status", "Cilium: errors"),
    (
        "hubble_http_request_duration_seconds_bucket",
        Metric::Duration(Part::Bucket),
        "le",
        "Cilium: service times, spread",
    ),
    (
        "hubble_http_request_duration_seconds_sum",
        Metric::Duration(Part::Sum),
        "",
        "Cilium: service times, mean",
    ),
    (
        "hubble_http_request_duration_seconds_count",
        Metric::Duration(Part::Count),
        "",
        "Cilium: service times, mean",
    ),
];

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    metrics: &METRICS,
    pair: "reporter, traffic_direction, source_namespace, source_workload, source_app, destination_namespace, \
           destination_workload, destination_app",
    selector: |_| "",
    call,
};

fn call(labels: &Labels, _: Metric) -> Option<Call<'_>> {
    let reporter = match (labels.reporter.as_deref(), labels.further("traffic_direction")) {
        (Some("client"), _) => Reporter::Source,
        (Some("server"), _) => Reporter::Destination,
        (_, Some("egress")) => Reporter::Source,
        _ => Reporter::Destination,
    };
    Some(Call {
        dialect: Dialect::Hubble,
        reporter,
        from: [
            labels.further("source_namespace"),
            workload(&labels.source_workload, labels.further("source_app")),
        ],
        to: [
            labels.further("destination_namespace"),
            workload(&labels.destination_workload, labels.further("destination_app")),
        ],
        host: None,
        is_grpc: false,
        is_error: labels.further("status").is_some_and(is_error_status),
    })
}

fn workload<'a>(name: &'a Option<String>, app: Option<&'a str>) -> Option<&'a str> {
    name.as_deref().filter(|name| !name.is_empty()).or(app)
}
