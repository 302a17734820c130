//! Schedules through the whole engine: ramps, think time, a fixed number of requests, an agreed start, the
//! seed.

mod recording_servers;
mod servers;
mod specs;

use load::{
    Arrival, GeneratorShare, LoadError, LoadSpec, Observer, Progress, RateStage, Recording, Replay,
    RequestTemplate, ScheduleSpec, Start, StartSignal, ThinkTime,
};
use recording_servers::{Closing, RecordingServer};
use results::{LoadResult, ReplayArrivals};
use servers::{OK, TestServer, reply};
use specs::Silent;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A warm-up of which some is left on a machine that stalls for seconds.
const WARM_UP: Duration = Duration::from_secs(3);

fn spec(server: &TestServer, schedule: ScheduleSpec, duration: Duration) -> LoadSpec {
    LoadSpec { threads: 2, ..specs::spec(&[server.url()], &RequestTemplate::default(), schedule, duration) }
}

/// Runs what starts at an agreed instant, again if the machine stalls over that instant: it does not run then.
fn started<T>(attempt: impl Fn() -> Result<T, LoadError>) -> T {
    let once = |_| match attempt() {
        Err(LoadError::StartMissed(_)) => None,
        ended => Some(ended.expect("the engine runs")),
    };
    (0..10).find_map(once).expect("a machine that runs at the start")
}

fn run(spec: &LoadSpec) -> LoadResult {
    load::run(spec, &AtomicBool::new(false), &mut Silent).expect("the engine runs")
}

#[test]
fn ramp_sends_area_under_its_rate() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let stages = vec![
        RateStage::ramp(0.0, 400.0, Duration::from_secs(1)),
        RateStage::ramp(400.0, 200.0, Duration::from_secs(1)),
    ];
    let schedule = ScheduleSpec::Open { stages, arrival: Arrival::Uniform };
    let result = run(&spec(&server, schedule, Duration::from_secs(2)));
    let requests = &result.requests;
    assert_eq!(requests.scheduled, 500);
    // A machine that stalls for a tenth of the window at its end leaves some unsent, which the verdict
    // reports.
    assert_eq!(requests.completed + requests.unsent, 500, "{requests:?}");
    assert!(requests.unsent <= 5 || !result.verdict.valid, "{requests:?}");
    assert_eq!(server.requests.load(Ordering::SeqCst), requests.completed);
    assert_eq!(result.rate.offered, Some(250.0));
}

#[test]
fn recorded_requests_are_sent_once_each_and_begin_with_the_warm_up() {
    let lines = (0..100).map(|number| {
        format!("[2024-01-01T00:00:00.{:03}Z] \"GET /{number}?a=b HTTP/1.1\" 200\n", number * 5)
    });
    let recording = Recording::read(lines.collect::<String>().as_bytes(), 1).expect("a log");
    let requests = recording.requests.expect("logs have requests");
    let server = RecordingServer::on_tcp(Closing::Never);
    let of = ReplayArrivals {
        file: "access.log".to_owned(),
        format: recording.format,
        requests: 100,
        speed: 1.0,
        ignored: 0,
        out_of_order: 0,
    };
    let schedule = ScheduleSpec::Replay(Replay { instants: recording.instants.into(), of });
    let template = RequestTemplate::default();
    let warmup = Duration::from_millis(100);
    let mut spec = specs::spec(&[server.url()], &template, schedule, recording.length - warmup);
    spec.targets = load::resolve_recording(&server.url(), &template, requests).expect("a good URL");
    (spec.warmup, spec.threads) = (warmup, 2);
    let result = run(&spec);
    assert_eq!(result.requests.scheduled, 80);
    assert_eq!(result.kinds.iter().map(|kind| kind.requests.sent).sum::<u64>(), result.requests.sent);
    let heads: Vec<String> = server.seen().into_iter().flat_map(|seen| seen.requests).collect();
    let mut numbers: Vec<u64> = heads
        .iter()
        .map(|head| head.strip_prefix("GET /").and_then(|rest| rest.split('?').next()).expect("a path"))
        .map(|number| number.parse().expect("a number"))
        .collect();
    numbers.sort_unstable();
    // A machine that stalls as the window opens drops some of the warm-up, and later ones keep their paths.
    let measured: Vec<u64> = numbers.iter().copied().filter(|number| *number >= 20).collect();
    assert_eq!(measured.len() as u64, result.requests.sent);
    assert!(numbers.windows(2).all(|two| two[0] < two[1]), "{numbers:?}");
    if result.requests.unsent == 0 {
        assert_eq!(measured, (20..100).collect::<Vec<_>>());
    }
}

#[test]
fn engine_schedule_depends_only_on_seed() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let scheduled = |seed, threads| {
        let duration = Duration::from_millis(300);
        let stages = vec![RateStage::steady(1000.0, duration)];
        let schedule = ScheduleSpec::Open { stages, arrival: Arrival::Poisson };
        run(&LoadSpec { seed, threads, ..spec(&server, schedule, duration) }).requests.scheduled
    };
    // A Poisson process of 300 requests yields a different number with nearly every seed.
    let first: Vec<u64> = (1..=4).map(|seed| scheduled(seed, 2)).collect();
    let again: Vec<u64> = (1..=4).map(|seed| scheduled(seed, 2)).collect();
    assert_eq!(first, again);
    assert!(first.iter().any(|count| *count != first[0]), "{first:?}");
}

#[test]
fn closed_loop_of_n_requests_ends_with_their_responses() {
    let server = TestServer::start(|stream, _| {
        thread::sleep(Duration::from_millis(2));
        reply(stream, OK)
    });
    // With more threads than clients, one thread has nothing to do and does not delay the end.
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
        let others = specs::reasons_but_of_busyness(&result);
        assert!(others.is_empty(), "{others:?}");
    }
}

#[test]
fn warm_up_requests_do_not_count_towards_quota() {
    let server = TestServer::start(|stream, _| {
        thread::sleep(Duration::from_millis(2));
        reply(stream, OK)
    });
    let schedule = ScheduleSpec::Closed { clients: 4, think_time: ThinkTime::NONE, requests: Some(50) };
    let mut spec = spec(&server, schedule, Duration::from_secs(600));
    spec.warmup = WARM_UP;
    let result = run(&spec);
    assert_eq!(result.requests.sent, 50);
    assert!(result.warmup.sent > 0);
    assert_eq!(server.requests.load(Ordering::SeqCst), 50 + result.warmup.sent);
}

#[test]
fn duration_ending_before_requests_is_noted() {
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
fn think_time_lowers_rate_but_is_not_measured() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    for think_time in
        [ThinkTime::Constant(Duration::from_millis(50)), ThinkTime::Exponential(Duration::from_millis(50))]
    {
        let schedule = ScheduleSpec::Closed { clients: 4, think_time, requests: None };
        let result = run(&spec(&server, schedule, Duration::from_secs(1)));
        // Four clients, at most twenty requests/s each apart from chance; fewer on a busy machine.
        assert!((4..=140).contains(&result.requests.completed), "{think_time:?}: {:?}", result.requests);
        let beside_service_us = result.response_time_us.p50.unwrap() - result.service_time_us.p50.unwrap();
        assert!(
            beside_service_us < 25_000.0,
            "{beside_service_us} µs, which thinking would make 35 000 or more"
        );
    }
}

#[test]
fn window_opens_at_agreed_instant() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let schedule = ScheduleSpec::closed(1);
    let mut spec = spec(&server, schedule, Duration::from_millis(100));
    spec.warmup = WARM_UP;
    // Enough time to get ready before the warm-up, on such a machine as well.
    let ahead = 2 * WARM_UP;
    let (result, start) = started(|| {
        let (begun, start) = (Instant::now(), jiff::Timestamp::now() + ahead);
        let spec = LoadSpec { start: Start::At(start), ..spec.clone() };
        let result = load::run(&spec, &AtomicBool::new(false), &mut Silent)?;
        assert!(begun.elapsed() >= ahead);
        Ok((result, start))
    });
    let started: jiff::Timestamp = result.started_at.parse().expect("RFC 3339");
    let away = started.duration_since(start).unsigned_abs();
    // The instant is that of the schedule, not when a thread woke up for it.
    assert!(away < Duration::from_millis(2), "{away:?} away");
    assert!(result.warmup.sent > 0, "the warm-up came before it");
}

#[test]
fn agreed_instant_in_the_past_is_error() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let mut spec = spec(&server, ScheduleSpec::closed(1), Duration::from_millis(100));
    spec.warmup = Duration::from_secs(10);
    // The window is in the future, but its warm-up does not fit before it.
    spec.start = Start::At(jiff::Timestamp::now() + Duration::from_secs(5));
    let error = load::run(&spec, &AtomicBool::new(false), &mut Silent).unwrap_err();
    assert!(matches!(error, LoadError::StartMissed(_)), "{error}");
    assert_eq!(server.requests.load(Ordering::SeqCst), 0);
}

/// Agrees on a start that is long past.
struct Late {
    signal: StartSignal,
    missed: usize,
}

impl Observer for Late {
    fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Ready => self.signal.send(jiff::Timestamp::now() - Duration::from_secs(5)),
            Progress::StartMissed => self.missed += 1,
            _ => {}
        }
    }
}

#[test]
fn start_signal_that_comes_too_late_is_an_event_and_an_error() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let mut spec = spec(&server, ScheduleSpec::closed(1), Duration::from_millis(100));
    let signal = StartSignal::default();
    spec.start = Start::OnSignal(signal.clone());
    let mut late = Late { signal, missed: 0 };
    let error = load::run(&spec, &AtomicBool::new(false), &mut late).unwrap_err();
    assert!(matches!(error, LoadError::StartMissed(_)), "{error}");
    assert_eq!((late.missed, server.requests.load(Ordering::SeqCst)), (1, 0));
}

/// Signals readiness to the others, one of which then sets the start.
struct Meeting<'a> {
    all_ready: &'a Barrier,
    signal: &'a StartSignal,
    warmup: Duration,
}

impl Observer for Meeting<'_> {
    fn progress(&mut self, progress: Progress<'_>) {
        if let Progress::Ready = progress
            && self.all_ready.wait().is_leader()
        {
            // Late enough for all to hear of it on a machine that stalls for seconds.
            self.signal.send(jiff::Timestamp::now() + Duration::from_secs(4) + self.warmup);
        }
    }
}

/// Runs a load as several concurrent generators, which connect first and start together. Returns the requests that the server has
/// read of them, too.
fn run_shared(server: &TestServer, spec: &LoadSpec, generators: usize) -> (Vec<LoadResult>, u64) {
    let read = || server.requests.load(Ordering::SeqCst);
    started(|| {
        let before = read();
        Ok((run_once_shared(spec, generators)?, read() - before))
    })
}

fn run_once_shared(spec: &LoadSpec, generators: usize) -> Result<Vec<LoadResult>, LoadError> {
    let (all_ready, signal) = (Barrier::new(generators), StartSignal::default());
    thread::scope(|scope| {
        let running: Vec<_> = (0..generators)
            .map(|index| {
                let share = GeneratorShare::new(index, generators).expect("a share");
                let spec = LoadSpec { share, start: Start::OnSignal(signal.clone()), ..spec.clone() };
                let (all_ready, signal) = (&all_ready, &signal);
                scope.spawn(move || {
                    let mut meeting = Meeting { all_ready, signal, warmup: spec.warmup };
                    load::run(&spec, &AtomicBool::new(false), &mut meeting)
                })
            })
            .collect();
        running.into_iter().map(|generator| generator.join().expect("no panic")).collect()
    })
}

#[test]
fn eighteen_generators_split_schedule_and_open_windows_together() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let duration = Duration::from_secs(1);
    let schedule =
        ScheduleSpec::Open { stages: vec![RateStage::steady(905.0, duration)], arrival: Arrival::Uniform };
    let spec = LoadSpec { connections: 40, threads: 1, ..spec(&server, schedule, duration) };
    let (results, read) = run_shared(&server, &spec, 18);
    let of_each = |count: fn(&LoadResult) -> usize| results.iter().map(count).collect::<Vec<_>>();
    assert_eq!(of_each(|result| result.requests.scheduled as usize), [vec![51; 5], vec![50; 13]].concat());
    assert_eq!(of_each(|result| result.connections), [vec![3; 4], vec![2; 14]].concat());
    assert!(results.iter().all(|result| result.rate.offered == Some(905.0 / 18.0)));
    let starts: Vec<jiff::Timestamp> =
        results.iter().map(|result| result.started_at.parse().expect("RFC 3339")).collect();
    let (first, last) = (starts.iter().min().unwrap(), starts.iter().max().unwrap());
    // The window's start is that of the schedule. Threads that wake late for it are late by `start_delay_us`.
    assert!(last.duration_since(*first).unsigned_abs() < Duration::from_millis(2), "{starts:?}");
    assert!(results.iter().all(|result| result.start_delay_us.is_some_and(|delay_us| delay_us >= 0.0)));
    assert_eq!(read, results.iter().map(|result| result.response_time_us.count).sum::<u64>());
}

#[test]
fn closed_loop_generators_divide_clients_and_requests() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let schedule = ScheduleSpec::Closed { clients: 7, think_time: ThinkTime::NONE, requests: Some(100) };
    let spec = LoadSpec { connections: 7, threads: 1, ..spec(&server, schedule, Duration::from_secs(60)) };
    let (results, read) = run_shared(&server, &spec, 3);
    assert_eq!(results.iter().map(|result| result.clients).collect::<Vec<_>>(), [Some(3), Some(2), Some(2)]);
    assert_eq!(results.iter().map(|result| result.connections).collect::<Vec<_>>(), [3, 2, 2]);
    assert_eq!(results.iter().map(|result| result.requests.completed).collect::<Vec<_>>(), [34, 33, 33]);
    assert_eq!(read, 100);
}

#[test]
fn generator_stopped_before_start_sends_nothing() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let start = Start::OnSignal(StartSignal::default());
    let spec = LoadSpec { start, ..spec(&server, ScheduleSpec::closed(1), Duration::from_secs(60)) };
    struct Stopping<'a>(&'a AtomicBool);
    impl Observer for Stopping<'_> {
        fn progress(&mut self, progress: Progress<'_>) {
            if let Progress::Ready = progress {
                self.0.store(true, Ordering::SeqCst);
            }
        }
    }
    let stop = AtomicBool::new(false);
    let result = load::run(&spec, &stop, &mut Stopping(&stop)).expect("the engine runs");
    assert_eq!((result.requests.scheduled, result.warmup.sent), (0, 0));
    assert_eq!(server.requests.load(Ordering::SeqCst), 0);
}
