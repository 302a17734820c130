//! The scenarios: a target with a known law, a load, and what each figure must be.

use super::row::{Row, Rows};
use super::target::{Answer, KnownTarget, Law};
use crate::failure::Failure;
use jiff::Timestamp;
use load::{
    Arrival, GeneratorShare, IoBackendChoice, LoadSpec, Observer, Progress, Protocol, RateStage,
    RequestTemplate, ScheduleSpec, Start,
};
use results::{Figure, LatencyHistogram, LoadResult, Pacing, rank};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
/// Requests that may be on their way at an edge of a window.
const CONNECTIONS: usize = 16;
/// A response is on its way, and read, for this long without anything being wrong.
const PATH_MS: f64 = 0.5;
/// By how much an outage may seem longer than it was.
const OUTAGE_MS: f64 = 20.0;
/// By which part of the truth a figure may differ.
const FIGURE_FRACTION: f64 = 0.05;
/// The same for throughput.
const RATE_FRACTION: f64 = 0.01;

/// Protocols of the targets.
const PROTOCOLS: [(&str, Protocol); 2] =
    [("HTTP/1.1", Protocol::Http1), ("HTTP/2", Protocol::Http2 { streams: CONNECTIONS })];

/// Runs a scenario; `stop` ends it early.
type Scenario = fn(&str, Protocol, &AtomicBool, &mut Rows) -> Result<(), Failure>;

/// Runs all scenarios. `begins` is told the name of each.
pub fn run(stop: &AtomicBool, begins: &mut dyn FnMut(&str)) -> Result<Rows, Failure> {
    let scenarios: [(&str, Scenario); 4] =
        [("capacity", capacity), ("two times", two_times), ("outage", outage), ("failures", failures)];
    let mut rows = Rows::default();
    for (name, scenario) in scenarios {
        for (protocol_name, protocol) in PROTOCOLS {
            begins(&format!("{name} over {protocol_name}"));
            scenario(protocol_name, protocol, stop, &mut rows)?;
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::broken("the self-test was stopped, and a part of it shows nothing"));
            }
        }
    }
    Ok(rows)
}

/// A target that serves one request at a time: throughput is its own record, whatever is offered.
fn capacity(name: &str, protocol: Protocol, stop: &AtomicBool, rows: &mut Rows) -> Result<(), Failure> {
    let target = start(Law::OneAtATime(2 * MS), protocol)?;
    let closed = load(&target, protocol, ScheduleSpec::closed(CONNECTIONS), 2000 * MS, stop)?;
    let capacity = closed.rate.completed;
    rows.push(throughput(format!("{name}, closed loop"), &target, &closed));
    for percent in [104.0, 115.0, 150.0] {
        let duration = 3000 * MS;
        let result = load(&target, protocol, open(capacity * percent / 100.0, duration), duration, stop)?;
        rows.push(throughput(format!("{name}, {percent} % of its capacity"), &target, &result));
    }
    Ok(())
}

/// A target that answers most requests soon and some late: percentiles are those of its own record.
fn two_times(name: &str, protocol: Protocol, stop: &AtomicBool, rows: &mut Rows) -> Result<(), Failure> {
    let target = start(Law::TwoTimes { usual: 5 * MS, slow: 40 * MS, slow_every: 20 }, protocol)?;
    let duration = 5000 * MS;
    let result = load(&target, protocol, open(200.0, duration), duration, stop)?;
    let answers = target.answers();
    let times = &result.response_time_us;
    for (label, figure, quantile, measured_us) in [
        ("p50", Figure::P50, 0.5, times.p50),
        ("p90", Figure::P90, 0.9, times.p90),
        ("p99", Figure::P99, 0.99, times.p99),
    ] {
        let truth = at_rank(answers.iter().map(|answer| ms(answer.took)), quantile);
        let late = at_rank(answers.iter().map(|answer| ms(answer.late)), quantile);
        rows.push(Row {
            scenario: format!("{name}, 5 % slow"),
            figure: format!("{label} (ms)"),
            truth,
            measured: measured_us.map(|us| us / 1e3),
            allowed: PATH_MS + FIGURE_FRACTION * truth + late,
            reason: reason(&result, figure),
        });
    }
    Ok(())
}

/// A target that answers nothing for a while: the longest response time is as long.
fn outage(name: &str, protocol: Protocol, stop: &AtomicBool, rows: &mut Rows) -> Result<(), Failure> {
    let hold = 300 * MS;
    let target = start(Law::Holds { after: 1000 * MS, hold }, protocol)?;
    let duration = 3000 * MS;
    let result = load(&target, protocol, open(200.0, duration), duration, stop)?;
    let answered = LatencyHistogram::decode(&result.response_time_us.histogram)
        .map_err(|error| Failure::broken(format!("read the generator's histogram: {error}")))?;
    let longest = answered.recorded().map(|value| value.value_us).max();
    let late = target.answers().iter().map(|answer| ms(answer.late)).fold(0.0, f64::max);
    rows.push(Row {
        scenario: format!("{name}, no answers for 300 ms"),
        figure: "longest (ms)".to_owned(),
        truth: ms(hold),
        measured: longest.map(|us| us as f64 / 1e3),
        allowed: OUTAGE_MS + late,
        reason: reason(&result, Figure::Max),
    });
    Ok(())
}

/// A target that fails some requests: they are counted one by one.
fn failures(name: &str, protocol: Protocol, stop: &AtomicBool, rows: &mut Rows) -> Result<(), Failure> {
    let every = 10;
    let target = start(Law::Fails { every }, protocol)?;
    let duration = 2500 * MS;
    let result = load(&target, protocol, open(200.0, duration), duration, stop)?;
    let requests = &result.requests;
    // Each request that was sent came to the target, which counts from one.
    let truth = (requests.sent / every as u64) as f64;
    rows.push(Row {
        scenario: format!("{name}, status 503 every {every}th"),
        figure: "failed requests".to_owned(),
        truth,
        measured: Some(requests.error_statuses() as f64),
        allowed: 0.0,
        reason: None,
    });
    Ok(())
}

fn start(law: Law, protocol: Protocol) -> Result<KnownTarget, Failure> {
    KnownTarget::start(law, protocol != Protocol::Http1)
        .map_err(|error| Failure::environment(&error).about("start a known target"))
}

fn open(rate: f64, duration: Duration) -> ScheduleSpec {
    ScheduleSpec::Open { stages: vec![RateStage::steady(rate, duration)], arrival: Arrival::Uniform }
}

struct Unobserved;

impl Observer for Unobserved {
    fn progress(&mut self, _: Progress<'_>) {}
}

/// Measures the target, as `meshmeter load` does.
fn load(
    target: &KnownTarget,
    protocol: Protocol,
    schedule: ScheduleSpec,
    duration: Duration,
    stop: &AtomicBool,
) -> Result<LoadResult, Failure> {
    let urls = vec![target.url()];
    let targets =
        load::resolve(&urls, &RequestTemplate::default()).map_err(|error| Failure::environment(&error))?;
    let spec = LoadSpec {
        urls,
        targets,
        protocol,
        schedule,
        connections: if protocol == Protocol::Http1 { CONNECTIONS } else { 1 },
        share: GeneratorShare::default(),
        opening: load::Opening::default(),
        requests_per_connection: None,
        threads: 1,
        warmup: Duration::ZERO,
        duration,
        timeout: 30_000 * MS,
        expected_status: None,
        tls: None,
        seed: 1,
        whole_seconds: false,
        per_url: false,
        pacing: Pacing::Auto,
        lag_tolerance: load::DEFAULT_LAG_TOLERANCE,
        start: Start::AtOnce,
        network: IoBackendChoice::Auto,
    };
    load::run(&spec, stop, &mut Unobserved).map_err(|error| Failure::environment(&error))
}

/// Throughput against the target's own record of the window.
fn throughput(scenario: String, target: &KnownTarget, result: &LoadResult) -> Row {
    let truth = answered_in(&target.answers(), result) / result.duration_s;
    Row {
        scenario,
        figure: "throughput (1/s)".to_owned(),
        truth,
        measured: Some(result.rate.completed),
        allowed: RATE_FRACTION * truth + CONNECTIONS as f64 / result.duration_s,
        reason: None,
    }
}

/// Answers that the target gave within the window of a result.
fn answered_in(answers: &[Answer], result: &LoadResult) -> f64 {
    let Ok(from) = result.started_at.parse::<Timestamp>() else { return f64::NAN };
    let until = from + Duration::from_secs_f64(result.duration_s);
    answers.iter().filter(|answer| (from..=until).contains(&answer.at)).count() as f64
}

/// Why the generator says that a figure must not be used, if it does.
fn reason(result: &LoadResult, figure: Figure) -> Option<String> {
    let mut reasons = result.verdict.reasons_with_figures();
    reasons.find(|(_, figures)| figures.contains(figure)).map(|(reason, _)| reason.to_owned())
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The value at a quantile's rank; NaN among none, which no figure is near.
fn at_rank(values: impl Iterator<Item = f64>, quantile: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = rank(values.len() as u64, quantile) as usize;
    values.get(rank - 1).copied().unwrap_or(f64::NAN)
}
