//! Prometheus metrics of a node: text exposition format 0.0.4.

use super::application::Application;
use super::tally::{CallCounters, NodeTally, Outcome};
use experiment::protocol::Protocol;
use hdrhistogram::Histogram as HdrHistogram;
use results::exposition::{Kind, Page};

/// Upper bounds of the duration buckets, microseconds: 50 µs to 10 s.
const BOUNDS_US: [u64; 17] = [
    50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];
const US_IN_S: f64 = 1e6;

/// Renders all metrics.
pub(crate) fn text(tally: &NodeTally, application: &Application) -> String {
    let mut page = Page::default();
    requests(&mut page, tally, application);
    page.family("meshmeter_connections_open", "Connections of clients that are open.", Kind::Gauge);
    page.number([], tally.inbound().connections_open as f64);
    let calls: Vec<(&str, CallCounters)> =
        tally.callees.iter().enumerate().map(|(index, name)| (name.as_str(), tally.calls(index))).collect();
    if !calls.is_empty() {
        results_of_calls(&mut page, &calls);
        connections_and_durations_of_calls(&mut page, &calls);
    }
    page.into_text()
}

fn requests(page: &mut Page, tally: &NodeTally, application: &Application) {
    let [unknown, codes @ ..] = codes(application.protocol);
    page.family(
        "meshmeter_requests_total",
        "Requests received whole, by endpoint and status code.",
        Kind::Counter,
    );
    for (index, offered) in application.endpoints.iter().enumerate() {
        for (outcome, code) in Outcome::ALL.into_iter().zip(codes) {
            let count = tally.sum(|worker| worker.endpoints[index][outcome as usize].get());
            page.number([("endpoint", offered.endpoint.path.as_str()), ("code", code)], count as f64);
        }
    }
    let count = tally.sum(|worker| worker.unknown.get());
    page.number([("endpoint", "unknown"), ("code", unknown)], count as f64);
}

/// Status codes for an unknown endpoint and for each [`Outcome`].
fn codes(protocol: Protocol) -> [&'static str; 1 + Outcome::ALL.len()] {
    match protocol {
        Protocol::Http1 | Protocol::Http2 => ["404", "200", "500", "502"],
        Protocol::Grpc => ["UNIMPLEMENTED", "OK", "INTERNAL", "UNAVAILABLE"],
        Protocol::Tcp => ["unknown", "answered", "injected", "failed"],
    }
}

fn results_of_calls(page: &mut Page, calls: &[(&str, CallCounters)]) {
    page.family("meshmeter_calls_total", "Requests to other services that have ended.", Kind::Counter);
    for (callee, counters) in calls {
        for (result, count) in
            [("answered", counters.answered), ("failed", counters.failed), ("unsent", counters.unsent)]
        {
            page.number([("callee", *callee), ("result", result)], count as f64);
        }
    }
    page.family(
        "meshmeter_call_retries_total",
        "Requests to other services that repeated a failed one.",
        Kind::Counter,
    );
    per_callee(page, calls, |counters| counters.retries);
}

/// A sample of the family for each called service.
fn per_callee(page: &mut Page, calls: &[(&str, CallCounters)], count: impl Fn(&CallCounters) -> u64) {
    for (callee, counters) in calls {
        page.number([("callee", *callee)], count(counters) as f64);
    }
}

fn connections_and_durations_of_calls(page: &mut Page, calls: &[(&str, CallCounters)]) {
    page.family(
        "meshmeter_call_connections_open",
        "Connections to other services that are open.",
        Kind::Gauge,
    );
    per_callee(page, calls, |counters| counters.connections_open);
    page.family(
        "meshmeter_call_duration_seconds",
        "From sending a request to the end of its response, of those answered.",
        Kind::Histogram,
    );
    for (callee, counters) in calls {
        let us: &HdrHistogram<u64> = &counters.response_time_us;
        let buckets = BOUNDS_US.map(|bound_us| (bound_us as f64 / US_IN_S, us.count_between(0, bound_us)));
        page.histogram([("callee", *callee)], buckets, us.len(), us.mean() * us.len() as f64 / US_IN_S);
    }
}
