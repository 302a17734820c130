//! Schedules through the whole engine: ramps, think time, a fixed number of requests, an agreed start, the seed.

mod servers;

use experiment::schema::LoadResult;
use load::{
    Arrival, LoadError, LoadSpec, NetworkChoice, Observer, Progress, Protocol, RateStage, RequestTemplate,
    ScheduleSpec, ThinkTime,
};
use servers::{OK, TestServer, reply};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _progress: Progress<'_>) {}
}

fn spec(server: &TestServer, schedule: ScheduleSpec, duration: Duration) -> LoadSpec {
    let template = RequestTemplate::default();
    let urls = vec![server.url()];
    LoadSpec {
        targets: load::resolve(&urls, &template).expect("a good URL"),
        urls,
        protocol: Protocol::Http1,
        requests_per_connection: None,
        schedule,
        connections: 4,
        threads: 2,
        warmup: Duration::ZERO,
        duration,
        timeout: Duration::from_secs(30),
        tls: None,
        seed: 1,
        pacing: load::Pacing::Auto,
        lag_tolerance: load::DEFAULT_LAG_TOLERANCE,
        whole_seconds: false,
        start_at: None,
        network: NetworkChoice::Auto,
    }
}

fn run(spec: &LoadSpec) -> LoadResult {
    load::run(spec, &AtomicBool::new(false), &mut Silent).expect("the engine runs")
}

#[test]
fn a_ramp_sends_the_area_under_its_rate() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let stages = vec![
        RateStage::ramp(0.0, 400.0, Duration::from_secs(1)),
        RateStage::ramp(400.0, 200.0, Duration::from_secs(1)),
    ];
    let schedule = ScheduleSpec::Open { stages, arrival: Arrival::Uniform };
    let result = run(&spec(&server, schedule, Duration::from_secs(2)));
    let requests = &result.requests;
    assert_eq!(requests.scheduled, 500);
    // A machine that is away for a tenth of the window at its end leaves some unsent, which the verdict tells.
    assert_eq!(requests.completed + requests.unsent, 500, "{requests:?}");
    assert!(requests.unsent <= 5 || result.verdict.saturated, "{requests:?}");
    assert_eq!(server.requests.load(Ordering::SeqCst), requests.completed);
    assert_eq!(result.rate.offered, Some(250.0));
}

#[test]
fn a_seed_gives_the_same_schedule_through_the_whole_engine() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let scheduled = |seed, threads| {
        let duration = Duration::from_millis(300);
        let stages = vec![RateStage::steady(1000.0, duration)];
        let schedule = ScheduleSpec::Open { stages, arrival: Arrival::Poisson };
        run(&LoadSpec { seed, threads, ..spec(&server, schedule, duration) }).requests.scheduled
    };
    // A Poisson process of 300 requests brings another number with nearly every seed.
    let first: Vec<u64> = (1..=4).map(|seed| scheduled(seed, 2)).collect();
    let again: Vec<u64> = (1..=4).map(|seed| scheduled(seed, 2)).collect();
    assert_eq!(first, again);
    assert!(first.iter().any(|count| *count != first[0]), "{first:?}");
}

#[test]
fn a_closed_loop_of_so_many_requests_ends_with_their_answers() {
    let server = TestServer::start(|stream, _| {
        thread::sleep(Duration::from_millis(2));
        reply(stream, OK)
    });
    // More threads than clients: one thread has nothing to do, and does not hold the end up.
    for (clients, requests) in [(4, 101), (1, 7), (4, 2)] {
        let before = server.requests.load(Ordering::SeqCst);
        let schedule =
            ScheduleSpec::Closed { clients, think_time: ThinkTime::NONE, requests: Some(requests) };
        let result = run(&spec(&server, schedule, Duration::from_secs(600)));
        assert_eq!(result.requests.sent, requests);
        assert_eq!(result.requests.scheduled, requests);
        assert_eq!(server.requests.load(Ordering::SeqCst) - before, requests);
        let (least_s, rate) = (0.002 * requests as f64 / clients as f64, result.rate.completed);
        assert!(result.duration_s >= least_s * 0.9 && result.duration_s < 60.0, "{}", result.duration_s);
        assert!(
            (rate * result.duration_s - requests as f64).abs() < 0.01,
            "{rate} for {}",
            result.duration_s
        );
        assert!(result.verdict.valid, "{:?}", result.verdict);
    }
}

#[test]
fn the_requests_of_the_warm_up_are_not_among_those_wanted() {
    let server = TestServer::start(|stream, _| {
        thread::sleep(Duration::from_millis(2));
        reply(stream, OK)
    });
    let schedule = ScheduleSpec::Closed { clients: 4, think_time: ThinkTime::NONE, requests: Some(50) };
    let mut spec = spec(&server, schedule, Duration::from_secs(600));
    spec.warmup = Duration::from_millis(100);
    let result = run(&spec);
    assert_eq!(result.requests.sent, 50);
    assert!(result.warmup.sent > 0);
    assert_eq!(server.requests.load(Ordering::SeqCst), 50 + result.warmup.sent);
}

#[test]
fn a_time_that_ends_before_the_requests_is_said() {
    let server = TestServer::start(|stream, _| {
        thread::sleep(Duration::from_millis(10));
        reply(stream, OK)
    });
    let schedule =
        ScheduleSpec::Closed { clients: 4, think_time: ThinkTime::NONE, requests: Some(1_000_000) };
    let result = run(&spec(&server, schedule, Duration::from_millis(200)));
    assert!(result.verdict.notes.iter().any(|note| note.starts_with("requests: ")), "{:?}", result.verdict);
}

#[test]
fn clients_that_think_send_less_and_do_not_count_their_thinking() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    for think_time in
        [ThinkTime::Constant(Duration::from_millis(50)), ThinkTime::Exponential(Duration::from_millis(50))]
    {
        let schedule = ScheduleSpec::Closed { clients: 4, think_time, requests: None };
        let result = run(&spec(&server, schedule, Duration::from_secs(1)));
        // Four clients, twenty requests a second each at most but for chance; fewer on a busy machine.
        assert!((4..=140).contains(&result.requests.completed), "{think_time:?}: {:?}", result.requests);
        let beside_service_us = result.response_time_us.p50.unwrap() - result.service_time_us.p50.unwrap();
        assert!(
            beside_service_us < 25_000.0,
            "{beside_service_us} µs, which thinking would make 35 000 or more"
        );
    }
}

#[test]
fn the_window_opens_at_the_agreed_instant() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let schedule = ScheduleSpec::closed(1);
    let mut spec = spec(&server, schedule, Duration::from_millis(100));
    spec.warmup = Duration::from_secs(1);
    // Time enough to get ready before the warm-up, on a busy machine too.
    let ahead = Duration::from_secs(3);
    let (begun, start) = (Instant::now(), jiff::Timestamp::now() + ahead);
    spec.start_at = Some(start);
    let result = run(&spec);
    assert!(begun.elapsed() >= ahead);
    let started: jiff::Timestamp = result.started_at.parse().expect("RFC 3339");
    let away = started.duration_since(start).unsigned_abs();
    // The instant is the schedule's own, not when a thread woke for it.
    assert!(away < Duration::from_millis(2), "{away:?} away");
    assert!(result.warmup.sent > 0, "the warm-up came before it");
}

#[test]
fn an_agreed_instant_that_is_past_is_an_error() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let mut spec = spec(&server, ScheduleSpec::closed(1), Duration::from_millis(100));
    spec.warmup = Duration::from_secs(10);
    // The window lies ahead, its warm-up does not fit before it.
    spec.start_at = Some(jiff::Timestamp::now() + Duration::from_secs(5));
    let error = load::run(&spec, &AtomicBool::new(false), &mut Silent).unwrap_err();
    assert!(matches!(error, LoadError::StartMissed(_)), "{error}");
    assert_eq!(server.requests.load(Ordering::SeqCst), 0);
}
