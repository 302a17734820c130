//! The engine against targets that follow a known law. Each scenario says what a figure must be: the target's own record of what
//! it did, or arithmetic. None depends on how fast the machine is.

mod grpc_servers;
mod http2_servers;
#[path = "known_targets/outages.rs"]
mod outages;
mod servers;
mod specs;

use bytes::Bytes;
use grpc_servers::GrpcServer;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderName, HeaderValue};
use http2_servers::{Answer, Http2Server};
use jiff::Timestamp;
use load::{GrpcCall, LoadSpec, Observer, Progress, Protocol, RequestTemplate, ScheduleSpec};
use results::{Figure, LatencyHistogram, LoadResult, Pacing};
use servers::{OK, TestServer, reply};
use specs::{NETWORK, Silent, TEST_TIMEOUT, open_loop};
use std::any::Any;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const HTTP2: Protocol = Protocol::Http2 { streams: 16 };

fn spec(url: &str, protocol: Protocol, schedule: ScheduleSpec, duration: Duration) -> LoadSpec {
    LoadSpec {
        protocol,
        connections: 8,
        network: NETWORK,
        ..specs::spec(&[url.to_owned()], &RequestTemplate::default(), schedule, duration)
    }
}

fn run(spec: &LoadSpec) -> LoadResult {
    load::run(spec, &AtomicBool::new(false), &mut Silent).expect("the engine runs")
}

/// A target that answers one request at a time, and when it did.
#[derive(Clone, Default)]
struct OneAtATime {
    answered: Arc<Mutex<Vec<Timestamp>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// Protocol of a target.
#[derive(Clone, Copy, Debug)]
enum Spoken {
    Http1,
    Http2,
    Grpc,
}

/// A target that answers one request at a time, behind a server.
struct KnownServer {
    url: String,
    spoken: Spoken,
    target: OneAtATime,
    _server: Box<dyn Any>,
}

impl OneAtATime {
    const SERVICE_TIME: Duration = Duration::from_millis(2);

    fn over(spoken: Spoken) -> KnownServer {
        let target = Self::default();
        let own = target.clone();
        let (url, server): (String, Box<dyn Any>) = match spoken {
            Spoken::Http1 => {
                let server = TestServer::start(move |stream, _| {
                    let turn = own.turn.blocking_lock();
                    std::thread::sleep(Self::SERVICE_TIME);
                    own.record();
                    drop(turn);
                    reply(stream, OK)
                });
                (server.url(), Box::new(server))
            }
            Spoken::Http2 => {
                let server = Http2Server::of_h2(
                    |_| {},
                    move |_, _| {
                        let own = own.clone();
                        async move {
                            own.serve().await;
                            Answer::Body { status: 200, bytes: 2, trailers: false }
                        }
                    },
                );
                (server.url(), Box::new(server))
            }
            Spoken::Grpc => {
                let server = GrpcServer::misbehaving(move |respond, _| {
                    let own = own.clone();
                    tokio::spawn(async move {
                        own.serve().await;
                        answer_messages(respond, 1, Duration::ZERO).await
                    });
                });
                (server.url(METHOD), Box::new(server))
            }
        };
        KnownServer { url, spoken, target, _server: server }
    }

    async fn serve(&self) {
        let _turn = self.turn.lock().await;
        tokio::time::sleep(Self::SERVICE_TIME).await;
        self.record();
    }

    fn record(&self) {
        self.answered.lock().expect("nobody panics").push(Timestamp::now());
    }

    /// Answers within the window of a result.
    fn answered_in(&self, result: &LoadResult) -> usize {
        let from: Timestamp = result.started_at.parse().expect("a timestamp");
        let until = from + Duration::from_secs_f64(result.duration_s);
        let answered = self.answered.lock().expect("nobody panics");
        answered.iter().filter(|at| (from..=until).contains(at)).count()
    }
}

/// A method of a gRPC service.
const METHOD: &str = "/test.Words/Repeat";

fn make_call(load: &mut LoadSpec, server_streams: bool) {
    let call = GrpcCall::unary(&[Vec::new()], server_streams).expect("a call");
    load.targets.servers[0].requests[0].make_call(METHOD, call, TEST_TIMEOUT);
}

/// Answers a call with empty messages, one after each pause, and status OK. A client that has gone ends it.
async fn answer_messages(
    mut respond: SendResponse<Bytes>,
    messages: usize,
    pause: Duration,
) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(grpc_servers::head(), false)?;
    for _ in 0..messages {
        tokio::time::sleep(pause).await;
        stream.send_data(Bytes::from_static(&[0; 5]), false)?;
    }
    let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
    stream.send_trailers(HeaderMap::from_iter([status]))
}

impl KnownServer {
    /// A load on 8 connections, of which each carries one request at a time, or two.
    fn load(&self, schedule: ScheduleSpec, duration: Duration) -> LoadSpec {
        let protocol = match self.spoken {
            Spoken::Http1 => Protocol::Http1,
            Spoken::Http2 | Spoken::Grpc => Protocol::Http2 { streams: 2 },
        };
        let mut load = spec(&self.url, protocol, schedule, duration);
        if let Spoken::Grpc = self.spoken {
            make_call(&mut load, false);
        }
        load
    }

    /// The throughput of a result against the server's own record of that window: equal but for what was on its way at the edges,
    /// on any of 8 connections of at most two streams, and read by a thread that the machine let wait.
    fn assert_throughput(&self, result: &LoadResult, what: &str) {
        let truth = self.target.answered_in(result) as f64;
        let measured = result.rate.completed * result.duration_s;
        let allowed = 0.01 * truth + 16.0;
        assert!((measured - truth).abs() <= allowed, "{what}: {measured} answered, {truth} by the server");
    }
}

#[test]
fn throughput_is_what_the_target_answered_within_the_window() {
    for spoken in [Spoken::Http1, Spoken::Http2, Spoken::Grpc] {
        let server = OneAtATime::over(spoken);
        let closed = run(&server.load(ScheduleSpec::closed(8), Duration::from_millis(600)));
        server.assert_throughput(&closed, &format!("{spoken:?}, closed loop"));
        let capacity = closed.rate.completed;
        for percent in [50.0, 101.0, 104.0, 108.0, 115.0, 150.0] {
            let duration = Duration::from_millis(1200);
            let what = format!("{spoken:?}, {percent} % of {capacity:.0}/s");
            let result = run(&server.load(open_loop(capacity * percent / 100.0, duration), duration));
            server.assert_throughput(&result, &what);
            // A machine that was slower while the capacity was measured can keep up with half as much more.
            if result.rate.completed < 0.9 * result.rate.offered.unwrap_or_default() {
                assert!(result.verdict.saturated, "{what}: {:?}", result.verdict);
                assert!(!result.verdict.is_usable(Figure::P50), "{what}: {:?}", result.verdict);
            }
        }
    }
}

/// Lets the target answer when the window opens, and again when it has closed.
struct Opening(Arc<Gate>);

#[derive(Default)]
struct Gate {
    openings: Mutex<usize>,
    opened: Condvar,
}

impl Gate {
    fn wait_for(&self, opening: usize) {
        let openings = self.openings.lock().expect("nobody panics");
        drop(self.opened.wait_while(openings, |openings| *openings < opening).expect("nobody panics"));
    }
}

impl Observer for Opening {
    fn progress(&mut self, progress: Progress<'_>) {
        if matches!(progress, Progress::WindowOpened | Progress::WindowClosed) {
            *self.0.openings.lock().expect("nobody panics") += 1;
            self.0.opened.notify_all();
        }
    }
}

#[test]
fn responses_count_in_the_window_that_they_come_in_whenever_they_were_due() {
    let gate = Arc::new(Gate::default());
    let of_server = Arc::clone(&gate);
    // The first request of each of 8 clients, sent in the warm-up, is answered in the window; all others after it.
    let server = TestServer::start(move |stream, ordinal| {
        of_server.wait_for(if ordinal == 0 { 1 } else { 2 });
        reply(stream, OK)
    });
    let mut load = spec(&server.url(), Protocol::Http1, ScheduleSpec::closed(8), Duration::from_secs(1));
    load.warmup = Duration::from_millis(300);
    let result = load::run(&load, &AtomicBool::new(false), &mut Opening(gate)).expect("the engine runs");
    assert_eq!((result.rate.completed * result.duration_s).round(), 8.0, "{:?}", result.rate);
    assert_eq!((result.warmup.completed, result.requests.completed), (8, 8), "{:?}", result.requests);
    assert_eq!(result.warmup.completed_in_window, 8, "{:?}", result.warmup);
    assert_eq!(result.requests.completed_after_window, 8, "{:?}", result.requests);
    assert_eq!(result.series.iter().map(|second| second.completed).sum::<u64>(), 8, "{:?}", result.series);
    assert!(result.response_time_us.min > 1000.0, "late responses are latency alone");
}

/// The longest wait of a request without a response.
fn longest_wait(result: &LoadResult) -> Duration {
    let longest_us = result.unanswered_waits_us.iter().map(|(wait_us, _)| *wait_us).fold(0.0, f64::max);
    Duration::from_secs_f64(longest_us / 1e6)
}

#[test]
fn percentiles_among_requests_never_sent_are_above_their_waits() {
    // Answers nothing: 8 requests are sent, unless the machine stalls through the window, and all others wait for a connection.
    let server = TestServer::start(|_, _| true);
    let duration = Duration::from_secs(1);
    let mut load = spec(&server.url(), Protocol::Http1, open_loop(1000.0, duration), duration);
    load.timeout = 4 * duration;
    let result = run(&load);
    let LoadResult { requests, response_time_us: times, .. } = &result;
    assert!(requests.failed <= 8, "{requests:?}");
    let counts = (requests.completed, requests.failed + requests.unsent, times.censored);
    assert_eq!(counts, (0, 1000, 1000), "{requests:?}");
    assert_eq!(times.p50, None);
    // Half of them were due in the second half of the window.
    let median_ms = result.censored_above_us.expect("requests without a response") / 1e3;
    assert!((480.0..=500.0).contains(&median_ms), "{median_ms} ms");
    // Waits of those never sent are known to a 256th of the window.
    assert!(longest_wait(&result) >= duration.mul_f64(0.99));
}

#[test]
fn each_url_counts_its_requests_that_were_never_sent() {
    let answering = TestServer::start(|stream, _| reply(stream, OK));
    let hung = TestServer::start(|_, _| true);
    // What waits for the only server is in the schedule, what waits for one of several in its pool.
    let of_one_server = [hung.url() + "a", hung.url() + "b"];
    for (urls, answered) in [(of_one_server, false), ([answering.url(), hung.url()], true)] {
        let duration = Duration::from_secs(1);
        let load = LoadSpec {
            connections: 8,
            network: NETWORK,
            per_url: true,
            // Connections open within it on a machine that stalls for seconds.
            timeout: 4 * duration,
            ..specs::spec(&urls, &RequestTemplate::default(), open_loop(400.0, duration), duration)
        };
        let result = run(&load);
        let [first, hung] = &result.per_url[..] else { panic!("{:?}", result.per_url) };
        assert_eq!(first.unsent + hung.unsent, result.requests.unsent);
        for (url, is_answered) in [(first, answered), (hung, false)] {
            assert_eq!(url.sent + url.unsent, 200, "{url:?}");
            if is_answered {
                continue;
            }
            assert_eq!((url.response_time_us.censored, url.response_time_us.p50), (200, None), "{url:?}");
            // Half of them were due in the second half of the window.
            let median_ms = url.censored_above_us.expect("requests without a response") / 1e3;
            assert!((480.0..=505.0).contains(&median_ms), "{url:?}");
        }
    }
}

#[test]
fn responses_that_are_read_together_came_within_their_uncertainty() {
    let target = OneAtATime::default();
    let own = target.clone();
    let server = Http2Server::of_frames(move |frames| {
        frames.greet(&[])?;
        loop {
            let stream = frames.next_request()?;
            std::thread::sleep(Duration::from_micros(1500));
            frames.answer(stream)?;
            own.record();
        }
    });
    let duration = Duration::from_secs(1);
    // One looks for responses all the time, the other one every ten milliseconds.
    for pacing in [Pacing::Precise, Pacing::Economical] {
        let load = LoadSpec {
            connections: 1,
            pacing,
            lag_tolerance: Duration::from_millis(10),
            ..spec(&server.url(), HTTP2, open_loop(250.0, duration), duration)
        };
        let result = run(&load);
        assert_eq!((result.requests.completed, result.requests.unsent), (250, 0), "{:?}", result.requests);
        // Requests are due every four milliseconds from the start.
        let started_at: Timestamp = result.started_at.parse().expect("a timestamp");
        let answered = std::mem::take(&mut *target.answered.lock().expect("nobody panics"));
        let after_start = |at: &Timestamp| at.duration_since(started_at).as_secs_f64() * 1e3;
        let truth_ms = answered.iter().map(after_start).sum::<f64>() / 250.0 - 498.0;
        let measured_ms = result.response_time_us.mean.expect("all are answered") / 1e3;
        let uncertainty = result.arrival_uncertainty_us.as_ref().expect("receive timestamps");
        assert_eq!(uncertainty.count, 250);
        let uncertain_ms = uncertainty.mean.expect("all are answered") / 1e3;
        let what =
            format!("{pacing:?}: {truth_ms} ms, measured {measured_ms}, of which {uncertain_ms} uncertain");
        assert!((truth_ms - 1.0..truth_ms + uncertain_ms + 1.0).contains(&measured_ms), "{what}");
        let is_named = result.verdict.reasons.iter().any(|reason| reason.starts_with("reading-lag: "));
        assert!(is_named || measured_ms < truth_ms + 1.5, "{what}: {:?}", result.verdict);
        assert!(is_named || pacing == Pacing::Precise, "{what}: {:?}", result.verdict);
    }
}

#[test]
fn times_between_messages_that_are_read_together_are_said_to_be_unknown() {
    let server = GrpcServer::misbehaving(|respond, _| {
        tokio::spawn(answer_messages(respond, 20, Duration::from_millis(1)));
    });
    let duration = Duration::from_secs(1);
    for pacing in [Pacing::Precise, Pacing::Economical] {
        let mut load = LoadSpec {
            connections: 1,
            pacing,
            lag_tolerance: Duration::from_millis(10),
            ..spec(&server.url(METHOD), HTTP2, open_loop(100.0, duration), duration)
        };
        make_call(&mut load, true);
        let result = run(&load);
        assert_eq!(result.requests.failed, 0, "{:?}", result.requests);
        let messages = result.grpc.expect("gRPC");
        let share = messages.read_together as f64 / messages.message_time_us.count as f64;
        let is_noted = result.verdict.notes.iter().any(|note| note.starts_with("messages: "));
        let is_late = pacing == Pacing::Economical;
        let is_right = if is_late { is_noted && share > 0.5 } else { is_noted || share < 0.1 };
        assert!(is_right, "{pacing:?}: {share}, {messages:?}, {:?}", result.verdict);
    }
}

#[test]
fn clients_of_a_closed_loop_wait_for_connections_to_open() {
    const OPENING_MS: f64 = 100.0;
    // Each connection carries one request.
    let server = Http2Server::of_frames(|frames| {
        std::thread::sleep(Duration::from_secs_f64(OPENING_MS / 1e3));
        frames.greet(&[])?;
        let stream = frames.next_request()?;
        frames.answer(stream)
    });
    let load = LoadSpec {
        connections: 2,
        requests_per_connection: NonZeroU64::new(1),
        ..spec(&server.url(), HTTP2, ScheduleSpec::closed(2), Duration::from_secs(1))
    };
    let result = run(&load);
    let completed = result.requests.completed;
    assert!(completed > 2 && completed <= 2 + 2 * 10, "{:?}", result.requests);
    for times in [&result.response_time_us, &result.schedule_lag_us] {
        let times = LatencyHistogram::decode(&times.histogram).expect("the engine's own");
        let waited = times.recorded().filter(|value| value.value_us as f64 > 0.99 * OPENING_MS * 1e3);
        // All but the first two, whose connections were opened before the schedule started.
        assert_eq!(waited.map(|value| value.count).sum::<u64>(), completed - 2);
    }
}

#[test]
fn slow_handshakes_limit_no_thread() {
    // Each connection carries one request, and is open after 0.4 s.
    let server = Http2Server::of_frames(|frames| {
        std::thread::sleep(Duration::from_millis(400));
        frames.greet(&[])?;
        let stream = frames.next_request()?;
        frames.answer(stream)
    });
    let duration = Duration::from_secs(2);
    for threads in [1, 2, 4] {
        // Four fifths of what the connections carry: on average 96 of them are being opened.
        let load = LoadSpec {
            connections: 120,
            requests_per_connection: NonZeroU64::new(1),
            threads,
            ..spec(&server.url(), HTTP2, open_loop(240.0, duration), duration)
        };
        let result = run(&load);
        let LoadResult { requests, verdict, .. } = &result;
        let is_kept_up = requests.unsent + requests.late <= 3 && result.response_time_us.p90 < Some(100e3);
        let is_connection_missed =
            verdict.reasons.iter().chain(&verdict.notes).any(|text| text.starts_with("connections: "));
        assert!(!is_connection_missed, "none was refused: {verdict:?}");
        let is_generator_named = verdict.reasons.iter().any(|reason| reason.contains("generator"));
        assert!(
            requests.failed == 0 && (is_kept_up || is_generator_named),
            "{threads}: {requests:?}, {verdict:?}"
        );
    }
}
