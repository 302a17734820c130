//! A load for tests of the engine. Each test changes what it is about.

use load::{Arrival, LoadSpec, Protocol, RateStage, RequestTemplate, ScheduleSpec};
use results::{HistogramSummary, LoadResult, Pacing};
use std::time::Duration;

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
        network: load::IoBackendChoice::Auto,
    }
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
    let total_s = |times: &HistogramSummary| times.mean.unwrap_or_default() * times.count as f64 / 1e6;
    let (answered_s, read_s) = (total_s(&result.response_time_us), total_s(lag));
    let clients_s = clients as f64 * result.duration_s;
    // The last request of each may end after the window, and be read as late as any if the machine stalls.
    let most_s = |times: &HistogramSummary| times.max.unwrap_or_default() / 1e6;
    let last_s = clients as f64 * (most_s(&result.response_time_us) + most_s(lag));
    let missing_s = clients_s - answered_s - read_s;
    assert!(missing_s.abs() < 0.02 * clients_s + last_s, "{answered_s} and {read_s} of {clients_s} s");
}

/// Requests at even intervals.
#[allow(dead_code, reason = "not every test has an open loop")]
pub fn open_loop(rate: f64, duration: Duration) -> ScheduleSpec {
    ScheduleSpec::Open { stages: vec![RateStage::steady(rate, duration)], arrival: Arrival::Uniform }
}
