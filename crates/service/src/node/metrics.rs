//! Prometheus metrics of a node: text exposition format 0.0.4.

use super::application::Application;
use super::tally::{CallCounters, NodeTally, Outcome};
use experiment::protocol::Protocol;
use hdrhistogram::Histogram as HdrHistogram;
use prometheus::TextEncoder;
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of the duration buckets, microseconds: 50 µs to 10 s.
const BOUNDS_US: [u64; 17] = [
    50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];
const US_IN_S: f64 = 1e6;

/// Renders all metrics.
pub(crate) fn text(tally: &NodeTally, application: &Application) -> String {
    let calls: Vec<(&str, CallCounters)> =
        tally.callees.iter().enumerate().map(|(index, name)| (name.as_str(), tally.calls(index))).collect();
    let inbound = tally.inbound();
    let mut families = vec![
        family(
            "meshmeter_requests_total",
            "Requests received whole, by endpoint and status code.",
            MetricType::COUNTER,
            requests(tally, application),
        ),
        family(
            "meshmeter_connections_open",
            "Connections of clients that are open.",
            MetricType::GAUGE,
            vec![gauge(inbound.connections_open, &[])],
        ),
    ];
    if !calls.is_empty() {
        families.extend(of_calls(&calls));
    }
    TextEncoder::new().encode_to_string(&families).expect("every family has a name and a metric")
}

fn requests(tally: &NodeTally, application: &Application) -> Vec<Metric> {
    let [unknown, codes @ ..] = codes(application.protocol);
    let mut requests = Vec::new();
    for (index, offered) in application.endpoints.iter().enumerate() {
        for (outcome, code) in Outcome::ALL.into_iter().zip(codes) {
            let count = tally.sum(|worker| worker.endpoints[index][outcome as usize].get());
            requests.push(counter(count, &[("endpoint", &offered.endpoint.path), ("code", code)]));
        }
    }
    let count = tally.sum(|worker| worker.unknown.get());
    requests.push(counter(count, &[("endpoint", "unknown"), ("code", unknown)]));
    requests
}

/// Status codes for an unknown endpoint and for each [`Outcome`].
fn codes(protocol: Protocol) -> [&'static str; 1 + Outcome::ALL.len()] {
    match protocol {
        Protocol::Http1 | Protocol::Http2 => ["404", "200", "500", "502"],
        Protocol::Grpc => ["UNIMPLEMENTED", "OK", "INTERNAL", "UNAVAILABLE"],
        Protocol::Tcp => ["unknown", "answered", "injected", "failed"],
    }
}

fn of_calls(calls: &[(&str, CallCounters)]) -> [MetricFamily; 4] {
    let results = calls.iter().flat_map(|(callee, counters)| {
        [("answered", counters.answered), ("failed", counters.failed), ("unsent", counters.unsent)]
            .map(|(result, count)| counter(count, &[("callee", callee), ("result", result)]))
    });
    let retries = calls.iter().map(|(callee, counters)| counter(counters.retries, &[("callee", callee)]));
    let open = calls.iter().map(|(callee, counters)| gauge(counters.connections_open, &[("callee", callee)]));
    let durations =
        calls.iter().map(|(callee, counters)| durations(&counters.response_time_us, &[("callee", callee)]));
    [
        family(
            "meshmeter_calls_total",
            "Requests to other services that have ended.",
            MetricType::COUNTER,
            results.collect(),
        ),
        family(
            "meshmeter_call_retries_total",
            "Requests to other services that repeated a failed one.",
            MetricType::COUNTER,
            retries.collect(),
        ),
        family(
            "meshmeter_call_connections_open",
            "Connections to other services that are open.",
            MetricType::GAUGE,
            open.collect(),
        ),
        family(
            "meshmeter_call_duration_seconds",
            "From sending a request to the end of its response, of those answered.",
            MetricType::HISTOGRAM,
            durations.collect(),
        ),
    ]
}

fn family(name: &str, help: &str, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

fn labelled(labels: &[(&str, &str)]) -> Metric {
    let labels = labels.iter().map(|(name, value)| {
        let mut label = LabelPair::default();
        label.set_name((*name).to_owned());
        label.set_value((*value).to_owned());
        label
    });
    let mut metric = Metric::default();
    metric.set_label(labels.collect());
    metric
}

fn counter(value: u64, labels: &[(&str, &str)]) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value as f64);
    let mut metric = labelled(labels);
    metric.set_counter(counter);
    metric
}

fn gauge(value: u64, labels: &[(&str, &str)]) -> Metric {
    let mut gauge = Gauge::default();
    gauge.set_value(value as f64);
    let mut metric = labelled(labels);
    metric.set_gauge(gauge);
    metric
}

fn durations(us: &HdrHistogram<u64>, labels: &[(&str, &str)]) -> Metric {
    let buckets = BOUNDS_US.map(|bound_us| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound_us as f64 / US_IN_S);
        bucket.set_cumulative_count(us.count_between(0, bound_us));
        bucket
    });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.into());
    histogram.set_sample_count(us.len());
    histogram.set_sample_sum(us.mean() * us.len() as f64 / US_IN_S);
    let mut metric = labelled(labels);
    metric.set_histogram(histogram);
    metric
}
