//! The engine against real servers on loopback: well-behaved, stalling, misbehaving, dying.
//!
//! Where possible, the server's own count of requests is compared with the engine's completed plus failed
//! requests.

mod servers;
#[path = "engine/servers_at_fault.rs"]
mod servers_at_fault;
mod specs;

use http::Method;
use load::{Address, IoBackendChoice, LoadSpec, Observer, Progress, RequestTemplate, ScheduleSpec, Second};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use results::{
    ExpectedStatuses, Figure, GeneratorNetwork, LatencyHistogram, LoadResult, Pacing, SeriesPoint, Verdict,
};
use servers::{OK, TestServer, reply, stalled};
use specs::{NETWORK, TEST_TIMEOUT, assert_reading_is_in_no_time, open_loop, so_many};
use std::net::TcpListener;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Records the progress of a run.
#[derive(Default)]
struct RecordingObserver {
    kinds: Vec<&'static str>,
    seconds: Vec<Second>,
}

impl Observer for RecordingObserver {
    fn progress(&mut self, progress: Progress<'_>) {
        self.kinds.push(match progress {
            Progress::Waiting => "waiting",
            Progress::Connecting => "connecting",
            Progress::Ready => "ready",
            Progress::StartMissed => "missed",
            Progress::WarmingUp => "warming up",
            Progress::WindowOpened => "opened",
            Progress::Second(_) => "second",
            Progress::WindowClosed => "closed",
        });
        if let Progress::Second(second) = progress {
            self.seconds.push(second.clone());
        }
    }
}

fn spec(url: &str, schedule: ScheduleSpec, duration: Duration) -> LoadSpec {
    LoadSpec {
        network: NETWORK,
        ..specs::spec(&[url.to_owned()], &RequestTemplate::default(), schedule, duration)
    }
}

fn open_spec(url: &str, rate: f64, duration: Duration) -> LoadSpec {
    spec(url, open_loop(rate, duration), duration)
}

/// Usual number of requests.
const REQUESTS: u64 = 40;

/// A load of [`REQUESTS`] on four connections, however long it takes.
fn usual(url: &str) -> LoadSpec {
    spec(url, so_many(4, REQUESTS), TEST_TIMEOUT)
}

fn run(spec: &LoadSpec) -> LoadResult {
    let result =
        load::run(spec, &AtomicBool::new(false), &mut RecordingObserver::default()).expect("the engine runs");
    let requests = &result.requests;
    assert_eq!(requests.scheduled, requests.sent + requests.unsent, "{requests:?}");
    assert_eq!(requests.sent, requests.completed + requests.failed, "{requests:?}");
    assert_eq!(result.response_time_us.count, requests.completed);
    assert_eq!(result.service_time_us.count, requests.completed);
    assert_eq!(result.schedule_lag_us.count, requests.sent);
    assert_eq!(result.series.iter().map(|point| point.completed).sum::<u64>(), requests.completed);
    assert_eq!(result.series.iter().map(|point| point.failed).sum::<u64>(), requests.failed);
    result
}

/// Window of an open loop: some of it is left on a machine that stalls for seconds.
const WINDOW: Duration = Duration::from_secs(3);

/// An address at which nothing listens. A port that was free a moment ago may be another test's by now.
const NOBODY: &str = "127.0.0.1:1";

/// Asserts that the usual number of requests was answered.
fn assert_all_answered(result: &LoadResult) {
    let requests = &result.requests;
    assert_eq!((requests.completed, requests.failed), (REQUESTS, 0), "{requests:?}");
}

#[test]
fn all_slots_are_sent_and_counted_by_both_sides() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let mut spec = open_spec(&server.url(), 500.0, WINDOW);
    (spec.warmup, spec.threads) = (WINDOW, 2);
    let result = run(&spec);
    let requests = &result.requests;
    assert_eq!((requests.scheduled, requests.failed), (1500, 0), "{requests:?}");
    // A machine that stalls for a tenth of the window at its end leaves some unsent, which the verdict reports.
    assert!(requests.completed > 0, "{requests:?}");
    assert!(requests.unsent <= 15 || !result.verdict.valid, "{requests:?}: {:?}", result.verdict);
    // The backlog at the end of the warm-up is dropped.
    assert!((1..=1500).contains(&result.warmup.completed), "{:?}", result.warmup);
    let completed = requests.completed;
    assert_eq!(server.requests.load(Ordering::SeqCst), completed + result.warmup.completed);
    assert_eq!(result.requests.status["200"], completed);
    assert_eq!(result.bytes.received, completed * OK.len() as u64);
    assert!(result.connect_time_us.count >= 4);
    // Those that came after the window are of requests sent after it, or under way on one of four connections.
    let in_window = (result.rate.completed * result.duration_s).round() as u64;
    let least = completed.saturating_sub(result.requests.late + 4);
    assert!((least..=completed + result.warmup.completed).contains(&in_window), "{result:?}");
    let of_window = completed - result.requests.completed_after_window;
    assert_eq!(in_window, of_window + result.warmup.completed_in_window, "{result:?}");
    assert!(result.generator.cpu_user_s + result.generator.cpu_system_s > 0.0);
    let network = result.generator.network.map(GeneratorNetwork::name);
    assert_eq!(network, Some(if NETWORK == IoBackendChoice::Epoll { "epoll" } else { "io_uring" }));
}

#[test]
fn nothing_is_sent_before_the_start() {
    let server = TestServer::start(|stream, _| {
        std::thread::sleep(Duration::from_millis(5));
        reply(stream, OK)
    });
    // The first request is due at the start itself: sent earlier, it would seem to be answered sooner.
    let result = run(&open_spec(&server.url(), 100.0, WINDOW));
    assert!(result.response_time_us.min >= 5000.0, "{} µs", result.response_time_us.min);
    assert!(result.service_time_us.min >= 5000.0, "{} µs", result.service_time_us.min);
}

#[test]
fn closed_loop_keeps_clients_busy_on_fewer_connections() {
    let server = TestServer::start(|stream, _| {
        std::thread::sleep(Duration::from_millis(10));
        reply(stream, OK)
    });
    let mut spec = spec(&server.url(), ScheduleSpec::closed(8), Duration::from_secs(1));
    spec.connections = 4;
    let result = run(&spec);
    assert_eq!(result.rate.offered, None);
    // Four connections at slightly more than 10 ms per request: at most 400.
    assert!((8..=404).contains(&result.requests.completed), "{}", result.requests.completed);
    // Little's law: on fast and slow machines alike, eight requests are in flight all the time, half of them
    // at the server. Those that wait at the end are never sent, and do not count.
    let under_way = result.rate.completed * result.response_time_us.mean.unwrap() / 1e6;
    assert!(under_way > 5.0, "{under_way}: {:?}", result.requests);
    assert!(result.response_time_us.p50.unwrap() > 1.5 * result.service_time_us.p50.unwrap());
    assert_eq!(specs::reasons_but_of_busyness(&result), Vec::<&String>::new());
}

/// True if the verdict says that the generator was late, which the machine causes.
fn said_late(result: &LoadResult) -> bool {
    let Verdict { notes, reasons, .. } = &result.verdict;
    notes.iter().chain(reasons).any(|text| text.starts_with("schedule-lag"))
}

#[test]
fn closed_loop_with_full_generator_reports_it() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let mut spec = spec(&server.url(), ScheduleSpec::closed(16), Duration::from_secs(1));
    spec.connections = 16;
    let result = run(&spec);
    // Whether its thread is full depends on what else runs on the machine. With few CPUs the process, which
    // includes the server here, may fill them all while the thread is not full.
    let working = result.generator.pacing.unwrap().busiest_working_fraction;
    let named = result.verdict.reasons.iter().find(|reason| reason.starts_with("generator-full: "));
    let is_thread_named = named.is_some_and(|reason| reason.contains("busiest thread"));
    assert_eq!(is_thread_named, working > 0.95, "{working}: {:?}", result.verdict);
    assert_eq!(result.verdict.is_usable(Figure::Throughput), named.is_none());
}

#[test]
fn reading_lag_is_measured_separately() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    // The kernel notes times some time after a socket asks for them, and as long as one does.
    let asking = TcpListener::bind("127.0.0.1:0").unwrap();
    setsockopt(&asking, ReceiveTimestampns, &true).unwrap();
    let is_noted = |result: &LoadResult| result.reading_lag_us.as_ref().unwrap().max > Some(0.0);
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_noted(&run(&usual(&server.url()))) {
        assert!(Instant::now() < deadline, "nothing is noted");
    }
    for pacing in [Pacing::Auto, Pacing::Precise, Pacing::Economical] {
        let result = run(&LoadSpec { pacing, ..usual(&server.url()) });
        let lag = result.reading_lag_us.expect("the kernel notes it");
        assert_eq!(lag.count, result.requests.completed, "{pacing:?}");
        assert!(lag.max > Some(0.0), "{pacing:?}: {lag:?}");
        assert!(result.generator.pacing.unwrap().answers_timed_by_kernel);
        assert_eq!(
            result.generator.pauses.is_some(),
            result.generator.pacing.unwrap().spinning_fraction > 0.0
        );
    }
}

#[test]
fn late_reading_is_in_no_time_of_a_closed_loop_and_delays_its_clients() {
    // One thread reads for many clients.
    const CLIENTS: usize = 64;
    let server = TestServer::start(|stream, _| reply(stream, OK));
    for pacing in [Pacing::Auto, Pacing::Precise, Pacing::Economical] {
        let mut spec = spec(&server.url(), so_many(CLIENTS, 200 * CLIENTS as u64), TEST_TIMEOUT);
        (spec.connections, spec.pacing) = (CLIENTS, pacing);
        assert_reading_is_in_no_time(&run(&spec), CLIENTS);
    }
}

#[test]
fn stall_counts_in_response_time_but_not_in_service_time() {
    let first_request = OnceLock::new();
    let (stall, period) = (Duration::from_millis(300), Duration::from_secs(3));
    let server = TestServer::start(move |stream, _| {
        stalled(*first_request.get_or_init(Instant::now), stall, period);
        reply(stream, OK)
    });
    let result = run(&open_spec(&server.url(), 1000.0, period));
    // A tenth of the requests are due in the stall, evenly: the slowest hundredth waited more than 9/10 of
    // it. On a busy machine they wait longer, but not shorter.
    let least_us = stall.as_micros() as f64 * 0.9 * 0.95;
    let measured_us = result.response_time_us.p99.unwrap();
    assert!(measured_us >= least_us, "p99 {measured_us} µs, expected {least_us} at least");
    // During the stall each connection has one request at the server: 4 of 3000 have it in their service
    // time. The p99 does not, unless the machine is as slow as the server.
    assert!(
        result.service_time_us.p99.unwrap() < 0.5 * measured_us,
        "{}",
        result.service_time_us.p99.unwrap()
    );
    // The stall is one episode, however many requests it hits; a busy machine adds others.
    let episodes = result.episodes["p99"];
    assert!((1..10).contains(&episodes) || said_late(&result), "{episodes}");
    // If the machine delayed the generator itself, the verdict says that.
    let Verdict { notes, reasons, .. } = &result.verdict;
    let said = |start: &str| notes.iter().chain(reasons).any(|text| text.starts_with(start));
    assert!(said("service-time-hides") || said("schedule-lag"), "{:?}", result.verdict);
    // Otherwise the generator is not to blame for the stall: usually it was not late and used free
    // connections at once.
    let usual_lag_us = result.generator_lag_us.p50.unwrap();
    assert!(said("schedule-lag") || usual_lag_us < 0.1 * measured_us, "{usual_lag_us}");
}

#[test]
fn stall_over_end_of_run_counts_in_percentiles() {
    // The stall begins with a request, whenever that arrives: the one due 100 ms before the end. The backlog
    // at the end is then far below the tenth of the window that is dropped, even if the machine stalls, too.
    const STALLED: u64 = 1475;
    let (began, served) = (OnceLock::new(), AtomicU64::new(0));
    let (length, duration) = (Duration::from_millis(550), Duration::from_secs(6));
    let server = TestServer::start(move |stream, _| {
        if served.fetch_add(1, Ordering::SeqCst) >= STALLED {
            std::thread::sleep(length.saturating_sub(began.get_or_init(Instant::now).elapsed()));
        }
        reply(stream, OK)
    });
    // Far below what four connections carry, even on a busy machine.
    let result = run(&open_spec(&server.url(), 250.0, duration));
    assert_eq!((result.requests.scheduled, result.requests.unsent), (1500, 0), "{:?}", result.requests);
    // 25 were due in the last 100 ms, and each connection carried one of them.
    assert!(result.requests.late >= 20, "{:?}", result.requests);
    // The slowest 15 of 1500 were due in the first 60 ms of the stall.
    let expected_us = (length.as_millis() as f64 - 60.0) * 1000.0;
    let measured_us = result.response_time_us.p99.unwrap();
    assert!(measured_us > 0.94 * expected_us, "p99 {measured_us} µs, expected {expected_us} at least");
    assert!(
        result.verdict.notes.iter().any(|note| note.starts_with("behind-at-end")),
        "{:?}",
        result.verdict
    );
    assert!(!result.verdict.saturated, "{:?}", result.verdict);
}

#[test]
fn excessive_rate_ends_on_time_and_is_saturated() {
    let server = TestServer::start(|stream, _| {
        std::thread::sleep(Duration::from_millis(5));
        reply(stream, OK)
    });
    let mut spec = open_spec(&server.url(), 100_000.0, WINDOW);
    spec.warmup = Duration::from_millis(300);
    let started = Instant::now();
    let result = run(&spec);
    // All of them would take more than six minutes.
    assert!(started.elapsed() < TEST_TIMEOUT, "{:?}", started.elapsed());
    // A machine that stalls until the end of the window hides that.
    let is_saturated = result.verdict.saturated && result.verdict.reasons[0].starts_with("saturated:");
    assert!(!result.verdict.valid && (is_saturated || said_late(&result)), "{:?}", result.verdict);
    assert_eq!(result.requests.scheduled, 300_000);
    assert!(result.requests.completed > 10, "the backlog of the warm-up does not fill the window");
}

#[test]
fn backlog_within_the_connections_is_saturation() {
    // Answers one request at a time, and any of those that wait: no more than 500/s.
    let turn = Mutex::new(());
    let server = TestServer::start(move |stream, _| {
        let held = turn.lock().expect("nobody panics");
        std::thread::sleep(Duration::from_millis(2));
        drop(held);
        reply(stream, OK)
    });
    let mut spec = open_spec(&server.url(), 750.0, Duration::from_millis(1200));
    // The backlog of 300 requests finds a connection each.
    spec.connections = 400;
    let result = run(&spec);
    let LoadResult { requests, verdict, .. } = &result;
    let is_told = verdict.saturated || said_late(&result);
    assert!(is_told && !verdict.is_usable(Figure::P50), "{requests:?}, {verdict:?}");
    let is_counted = verdict.reasons[0].contains("unanswered requests grew throughout the window");
    // A slower machine leaves more than the connections hold.
    assert!(is_counted || requests.unsent + requests.late > 0, "{requests:?}, {verdict:?}");
}

#[test]
fn interrupted_run_keeps_measurements() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let stop = AtomicBool::new(false);
    /// Stops the run after its first second with responses.
    struct StopAfterASecond<'a>(&'a AtomicBool, SeriesPoint);
    impl Observer for StopAfterASecond<'_> {
        fn progress(&mut self, progress: Progress<'_>) {
            if let Progress::Second(second) = progress
                && second.point.completed > 0
                && !self.0.swap(true, Ordering::SeqCst)
            {
                self.1 = second.point;
            }
        }
    }
    let mut observer = StopAfterASecond(&stop, SeriesPoint::default());
    let spec = open_spec(&server.url(), 200.0, Duration::from_secs(60));
    let result = load::run(&spec, &stop, &mut observer).unwrap();
    let requests = &result.requests;
    assert!((1.0..30.0).contains(&result.duration_s), "{}", result.duration_s);
    // All requests that were due until then, and those of them that were sent.
    assert!((requests.scheduled as f64 - 200.0 * result.duration_s).abs() < 2.0, "{requests:?}");
    assert!(observer.1.completed > 0 && requests.completed >= observer.1.completed, "{requests:?}");
    assert_eq!(requests.completed + requests.failed + requests.unsent, requests.scheduled);
    let noted = result.verdict.notes.iter().any(|note| note.starts_with("interrupted"));
    assert!(noted, "{:?}", result.verdict);
}

#[test]
fn interrupt_does_not_wait_for_missing_responses() {
    let server = TestServer::start(|_, _| true);
    let stop = AtomicBool::new(false);
    /// Stops the run when its window is over and responses are awaited.
    struct StopWhenOver<'a>(&'a AtomicBool);
    impl Observer for StopWhenOver<'_> {
        fn progress(&mut self, progress: Progress<'_>) {
            if let Progress::WindowClosed = progress {
                self.0.store(true, Ordering::SeqCst);
            }
        }
    }
    let mut spec = open_spec(&server.url(), 100.0, WINDOW);
    spec.timeout = Duration::from_secs(60);
    let started = Instant::now();
    let result = load::run(&spec, &stop, &mut StopWhenOver(&stop)).unwrap();
    assert!(started.elapsed() < TEST_TIMEOUT, "{:?}", started.elapsed());
    assert_eq!(result.requests.failed, 4);
    assert_eq!(result.requests.errors["interrupted"], 4, "{:?}", result.requests);
}

#[test]
fn progress_is_reported_in_order() {
    let server = TestServer::start(|stream, _| reply(stream, OK));
    let mut spec = open_spec(&server.url(), 100.0, WINDOW);
    spec.warmup = Duration::from_millis(100);
    let mut told = RecordingObserver::default();
    load::run(&spec, &AtomicBool::new(false), &mut told).unwrap();
    let (seconds, stages): (Vec<&str>, Vec<&str>) = told.kinds.iter().partition(|kind| **kind == "second");
    assert_eq!(stages, ["connecting", "warming up", "opened", "closed"]);
    // A second is reported when it is over: on a busy machine possibly late, but never early.
    assert!(seconds.len() >= 2, "{:?}", told.kinds);
    assert_eq!(told.kinds[..3], ["connecting", "warming up", "opened"]);
    let begins: Vec<f64> = told.seconds.iter().map(|second| second.point.t_s).collect();
    assert!(begins[0] == 0.0 && begins.is_sorted_by(|one, next| one < next), "{begins:?}");
}

#[test]
fn reported_seconds_add_up_to_whole_run() {
    let served = AtomicU64::new(0);
    let server = TestServer::start(move |stream, _| match served.fetch_add(1, Ordering::SeqCst) % 10 {
        0 => false,
        1 => reply(stream, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
        _ => reply(stream, OK),
    });
    // A stage that the window leaves early, as with a given number of requests.
    let schedule = open_loop(200.0, Duration::from_secs(60));
    let mut spec = spec(&server.url(), schedule, Duration::from_millis(2500));
    (spec.warmup, spec.threads, spec.whole_seconds) = (Duration::from_millis(100), 2, true);
    let mut told = RecordingObserver::default();
    let result = load::run(&spec, &AtomicBool::new(false), &mut told).unwrap();
    let total = |count: fn(&Second) -> u64| told.seconds.iter().map(count).sum::<u64>();
    assert_eq!(total(|second| second.point.sent), result.requests.sent);
    assert_eq!(total(|second| second.point.completed), result.requests.completed);
    assert_eq!(total(|second| second.point.failed), result.requests.failed);
    assert_eq!(total(|second| second.bytes_received), result.bytes.received);
    // In a second in which the machine stalled there may be nothing.
    let lags = total(|second| second.detail.as_ref().map_or(0, |detail| detail.schedule_lag.count()));
    let times = total(|second| second.detail.as_ref().map_or(0, |detail| detail.service_time.count()));
    assert_eq!((lags, times), (result.requests.sent, result.requests.completed));
    let not_found =
        total(|second| second.statuses.iter().filter(|(code, _)| *code == 404).map(|(_, count)| count).sum());
    assert_eq!(not_found, result.requests.status.get("404").copied().unwrap_or_default());
    let errors = total(|second| second.errors.iter().map(|(_, count)| count).sum());
    assert_eq!(errors, result.requests.errors.values().sum::<u64>(), "{:?}", result.requests);
    assert!(errors >= result.requests.failed);
    // What comes later was due before.
    let due_in = [200.0, 200.0, 100.0].into_iter().chain(std::iter::repeat(0.0));
    let due = told.seconds.iter().map(|second| second.due.unwrap());
    assert!(due.eq(due_in.take(told.seconds.len())), "{:?}", told.seconds);
    let mut merged = LatencyHistogram::new();
    for second in &told.seconds {
        merged.merge(&second.response_time);
    }
    assert_eq!(merged.summary_with(result.requests.failed + result.requests.unsent), result.response_time_us);
    assert!(told.seconds.iter().all(|second| second.connections_open <= 4), "{:?}", told.seconds);
    assert_eq!(told.seconds.iter().map(|second| second.point).collect::<Vec<_>>(), result.series);
}
