//! Linkerd's proxy metrics (linkerd.io, "Proxy Metrics"): a proxy counts requests that its application sends (`outbound`) and
//! receives (`inbound`). Callers are known to their own proxies alone. Probes, and requests to the proxy's own port, are of no
//! call.

use super::answer::Labels;
use super::vocabulary::{Call, Metric, Named, Part, Vocabulary};
use crate::dialect::Dialect;
use crate::telemetry::Reporter;
use std::borrow::Cow;

/// Port of the proxy's own metrics.
const ADMIN_PORT: &str = "4191";
/// Route name of a kubelet's probes.
const PROBE: &str = "probe";
/// Kinds of workloads of the proxy's pod, and of the pod that it calls.
const OWN: [&str; 6] =
    ["deployment", "statefulset", "daemonset", "k8s_job", "replicaset", "replicationcontroller"];
const CALLED: [&str; 6] = [
    "dst_deployment",
    "dst_statefulset",
    "dst_daemonset",
    "dst_k8s_job",
    "dst_replicaset",
    "dst_replicationcontroller",
];

const METRICS: [Named; 7] = [
    (
        "response_total",
        Metric::Requests,
        "classification, status_code, grpc_status, grpc_status_code",
        "Linkerd: rates, errors",
    ),
    ("response_latency_ms_bucket", Metric::Duration(Part::Bucket), "le", "Linkerd: service times, spread"),
    ("response_latency_ms_sum", Metric::Duration(Part::Sum), "", "Linkerd: service times, mean"),
    ("response_latency_ms_count", Metric::Duration(Part::Count), "", "Linkerd: service times, mean"),
    ("tcp_open_total", Metric::Opened, "", "Linkerd: connections"),
    // Of the end that the caller's proxy opens.
    ("tcp_read_bytes_total", Metric::Sent, "", "Linkerd: bytes that servers sent over connections"),
    ("tcp_write_bytes_total", Metric::Received, "", "Linkerd: bytes that clients sent over connections"),
];

pub(super) const VOCABULARY: Vocabulary = Vocabulary {
    metrics: &METRICS,
    pair: "direction, namespace, deployment, statefulset, daemonset, k8s_job, replicaset, replicationcontroller, dst_namespace, \
           dst_deployment, dst_statefulset, dst_daemonset, dst_k8s_job, dst_replicaset, dst_replicationcontroller, dst_service, \
           authority",
    selector: |metric| match metric.is_of_connections() {
        true => "{direction=\"outbound\", peer=\"dst\"}",
        false => "{direction=~\"inbound|outbound\", route_name!=\"probe\", target_port!=\"4191\"}",
    },
    call,
};

fn call(labels: &Labels, metric: Metric) -> Option<Call<'_>> {
    if labels.further("route_name") == Some(PROBE) || labels.further("target_port") == Some(ADMIN_PORT) {
        return None;
    }
    let own = [labels.further("namespace"), labels.first_of(&OWN)];
    let (reporter, from, to, host) = match labels.further("direction")? {
        "outbound" => {
            let called = [labels.further("dst_namespace"), labels.first_of(&CALLED)];
            (Reporter::Source, own, called, host(labels))
        }
        // Connections of requests are there too, and those of other protocols are the callers'.
        "inbound" if !metric.is_of_connections() => (Reporter::Destination, [None, None], own, None),
        _ => return None,
    };
    if metric.is_of_connections() && labels.further("peer") == Some("src") {
        return None;
    }
    Some(Call {
        dialect: Dialect::Linkerd,
        reporter,
        from,
        to,
        host,
        is_grpc: labels.first_of(&["grpc_status", "grpc_status_code"]).is_some(),
        is_error: labels.further("classification") == Some("failure"),
    })
}

/// Service that is called, or the name that the request has for it.
fn host(labels: &Labels) -> Option<Cow<'_, str>> {
    match (labels.further("dst_service"), labels.further("dst_namespace")) {
        (Some(service), Some(namespace)) => {
            Some(Cow::Owned(format!("{service}.{namespace}.svc.cluster.local")))
        }
        _ => labels.further("authority").map(|authority| {
            let port = authority.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
            Cow::Borrowed(port.map_or(authority, |(host, _)| host))
        }),
    }
}
