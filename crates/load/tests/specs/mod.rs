//! A load for tests of the engine. Each test changes what it is about.

use load::{Arrival, LoadSpec, Protocol, RateStage, RequestTemplate, ScheduleSpec};
use results::{LoadResult, Pacing};
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

/// Requests at even intervals.
#[allow(dead_code, reason = "not every test has an open loop")]
pub fn open_loop(rate: f64, duration: Duration) -> ScheduleSpec {
    ScheduleSpec::Open { stages: vec![RateStage::steady(rate, duration)], arrival: Arrival::Uniform }
}
