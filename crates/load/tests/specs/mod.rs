//! A load for tests of the engine. Each test changes what it is about.

use load::{
    Arrival, IoBackendChoice, LoadSpec, Observer, Progress, Protocol, RateStage, RequestTemplate,
    ScheduleSpec, ThinkTime,
};
use results::{HistogramSummary, LatencyHistogram, LoadResult, Pacing};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// I/O interface of the connections: epoll in a test binary `…_on_epoll`, which runs the tests of another.
#[allow(dead_code, reason = "not every test runs over both")]
pub const NETWORK: IoBackendChoice = match env!("CARGO_CRATE_NAME").as_bytes() {
    [.., b'_', b'e', b'p', b'o', b'l', b'l'] => IoBackendChoice::Epoll,
    _ => IoBackendChoice::IoUring,
};

/// Observer of a run whose progress is of no interest.
#[allow(dead_code, reason = "not every test has one")]
pub struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: Progress<'_>) {}
}

/// Timeout for things that should not take time at all: a busy machine takes seconds, a hung one forever.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// HTTP/1.1 on four connections of one thread, without a warm-up.
pub fn spec(
    urls: &[String],
    template: &RequestTemplate,
    schedule: ScheduleSpec,
    duration: Duration,
) -> LoadSpec {
    LoadSpec {
        targets: load::resolve(urls, template).expect("good URLs"),
        urls: urls.to_vec(),
        protocol: Protocol::Http1,
        schedule,
        opening: load::Opening::default(),
        requests_per_connection: None,
        connections: 4,
        threads: 1,
        warmup: Duration::ZERO,
        duration,
        timeout: TEST_TIMEOUT,
        expected_status: None,
        tls: None,
        seed: 1,
        pacing: Pacing::Auto,
        lag_tolerance: load::DEFAULT_LAG_TOLERANCE,
        whole_seconds: false,
        per_url: false,
        start: load::Start::AtOnce,
        share: load::GeneratorShare::default(),
        network: IoBackendChoice::Auto,
    }
}

/// Runs a load, and asserts that all its requests are accounted for.
#[allow(dead_code, reason = "some tests assert something else of every run")]
pub fn run(spec: &LoadSpec) -> LoadResult {
    let result = load::run(spec, &AtomicBool::new(false), &mut Silent).expect("the engine runs");
    let requests = &result.requests;
    assert_eq!(requests.scheduled, requests.sent + requests.unsent, "{requests:?}");
    assert_eq!(requests.sent, requests.completed + requests.failed, "{requests:?}");
    result
}

/// Reasons of a verdict but those that a busy machine causes: it makes any generator late. The CPU of a generator is that of
/// its process, which runs other tests with their servers.
#[allow(dead_code, reason = "not every test judges verdicts")]
pub fn reasons_but_of_busyness(result: &LoadResult) -> Vec<&String> {
    let of_busyness = ["schedule-lag: ", "reading-lag: ", "generator-full: "];
    let is_other = |reason: &&String| !of_busyness.iter().any(|start| reason.starts_with(start));
    result.verdict.reasons.iter().filter(is_other).collect()
}

/// Asserts that the time of each client of a closed loop is that of its requests, and how late their responses were read.
#[allow(dead_code, reason = "not every test has a closed loop")]
pub fn assert_reading_is_in_no_time(result: &LoadResult, clients: usize) {
    let lag = result.reading_lag_us.as_ref().expect("the kernel notes when responses came");
    assert_eq!(lag.count, result.requests.completed);
    // A summary has no mean and no maximum if a machine that stalls at the end leaves requests unsent.
    let times_of = |summary: &HistogramSummary| {
        LatencyHistogram::decode(&summary.histogram).expect("the engine's own histogram")
    };
    let (answered, read) = (times_of(&result.response_time_us), times_of(lag));
    let total_s = |times: &LatencyHistogram| times.mean_us() * times.count() as f64 / 1e6;
    let (answered_s, read_s) = (total_s(&answered), total_s(&read));
    let waits_us = result.unanswered_waits_us.iter().map(|(wait_us, count)| wait_us * *count as f64);
    let unsent_s = waits_us.sum::<f64>() / 1e6;
    let clients_s = clients as f64 * result.duration_s;
    // The last request of each may end after the window, and be read as late as any if the machine stalls.
    let last_s = clients as f64 * (answered.max_us() + read.max_us()) / 1e6;
    let missing_s = clients_s - answered_s - read_s - unsent_s;
    assert!(
        missing_s.abs() < 0.02 * clients_s + last_s,
        "{answered_s}, {read_s} and {unsent_s} of {clients_s} s"
    );
}

/// Requests at even intervals.
#[allow(dead_code, reason = "not every test has an open loop")]
pub fn open_loop(rate: f64, duration: Duration) -> ScheduleSpec {
    ScheduleSpec::Open { stages: vec![RateStage::steady(rate, duration)], arrival: Arrival::Uniform }
}

/// A closed loop that ends with this many responses.
#[allow(dead_code, reason = "not every test has a closed loop")]
pub fn so_many(clients: usize, requests: u64) -> ScheduleSpec {
    ScheduleSpec::Closed { clients, think_time: ThinkTime::NONE, requests: Some(requests) }
}
