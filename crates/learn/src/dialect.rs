//! Meshes whose metrics are read, by what their proxies report.

use crate::telemetry::Reporter;

/// A mesh's metrics, in the order of precedence: where two meshes report requests, the first counts, since both may report the
/// same ones.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Dialect {
    #[default]
    Istio,
    Linkerd,
    Hubble,
    /// Istio's metrics without the label `reporter`.
    Unreported,
    /// Kiali's graph of Istio's metrics.
    Kiali,
}

/// Names of a dialect's metrics, as sources of figures.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) requests: &'static str,
    pub(crate) connections: &'static str,
    pub(crate) duration: &'static str,
    pub(crate) request_bytes: &'static str,
    pub(crate) response_bytes: &'static str,
    /// Metrics without which something is missing.
    pub(crate) expected: &'static [&'static str],
}

const ISTIO: Metrics = Metrics {
    requests: "istio_requests_total",
    connections: "istio_tcp_connections_opened_total",
    duration: "istio_request_duration_milliseconds",
    request_bytes: "istio_request_bytes",
    response_bytes: "istio_response_bytes",
    expected: &[
        "istio_request_duration_milliseconds_bucket",
        "istio_requests_total",
        "istio_request_bytes_count",
        "istio_response_bytes_count",
    ],
};
const LINKERD: Metrics = Metrics {
    requests: "response_total",
    connections: "tcp_open_total",
    duration: "response_latency_ms",
    request_bytes: "tcp_write_bytes_total",
    response_bytes: "tcp_read_bytes_total",
    expected: &["response_latency_ms_bucket", "response_total"],
};
const HUBBLE: Metrics = Metrics {
    requests: "hubble_http_requests_total",
    duration: "hubble_http_request_duration_seconds",
    expected: &["hubble_http_request_duration_seconds_bucket", "hubble_http_requests_total"],
    ..ISTIO
};

const KIALI: Metrics = Metrics {
    requests: "Kiali's graph",
    connections: "Kiali's graph, bytes/s; one connection per second is assumed",
    duration: "Kiali's graph, responseTime",
    request_bytes: "Kiali's graph",
    response_bytes: "Kiali's graph, bytes/s",
    expected: &[],
};

impl Dialect {
    pub(crate) const ALL: [Self; 5] =
        [Self::Istio, Self::Linkerd, Self::Hubble, Self::Unreported, Self::Kiali];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Istio => "Istio",
            Self::Linkerd => "Linkerd",
            Self::Hubble => "Cilium's Hubble",
            Self::Unreported => "Istio, without `reporter`",
            Self::Kiali => "Kiali",
        }
    }

    pub(crate) fn metrics(self) -> &'static Metrics {
        match self {
            Self::Istio | Self::Unreported => &ISTIO,
            Self::Linkerd => &LINKERD,
            Self::Hubble => &HUBBLE,
            Self::Kiali => &KIALI,
        }
    }

    /// Source of a figure: its metric, and the reporter where there is a choice.
    pub(crate) fn source(self, metric: &str, reporter: Reporter) -> String {
        if self == Self::Kiali {
            metric.to_owned()
        } else {
            format!("{metric}, reporter {}", reporter.name())
        }
    }

    /// Seconds of a unit of its durations.
    pub(crate) fn duration_unit_s(self) -> f64 {
        if self == Self::Hubble { 1.0 } else { 1e-3 }
    }

    /// Limits of the metrics, by kind of finding.
    pub(crate) fn limits(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Istio => &[],
            Self::Linkerd => &[
                ("missing-sizes", "Linkerd's metrics have no sizes of requests: they have no body"),
                (
                    "missing-times",
                    "Linkerd's times end with the first byte of a response: a long body takes longer",
                ),
                ("unidentified-callers", "Linkerd's proxies of callees do not name workloads that call"),
            ],
            Self::Hubble => &[
                ("missing-sizes", "Hubble's metrics have no sizes of requests: they have no body"),
                (
                    "missing-metric",
                    "Hubble's metrics of HTTP have no connections of other protocols, and gRPC counts as HTTP",
                ),
            ],
            Self::Unreported => &[(
                "missing-metric",
                "the metrics have no label `reporter`: where both ends' proxies were added up, rates are twice as high",
            )],
            Self::Kiali => &[
                ("missing-sizes", "Kiali's graph has no sizes: requests and responses have no body"),
                (
                    "missing-times",
                    "Kiali's graph has one response time per call, in whole milliseconds, and does not say which: it is taken as the \
                     mean, and times have no spread",
                ),
                (
                    "missing-metric",
                    "Kiali's graph has bytes and no connections: a call over TCP is one connection per second with its bytes",
                ),
            ],
        }
    }
}
