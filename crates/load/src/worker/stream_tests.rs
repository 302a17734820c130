//! Responses over a network whose bytes arrive at given instants.

use super::*;
use crate::network::{Event, Route, wall_clock};
use crate::protocol::http1::{Http1, Http1Request};
use crate::schedule::{ClosedLoop, ClosedLoopSettings, ThinkTime};
use crate::target::{RequestTemplate, resolve};
use results::HistogramSummary;
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Instant;

const MS: Nanos = 1_000_000;

/// A segment: its arrival, since the first, and its bytes; without any, the end of the connection in the segment before.
type Segment = (Duration, &'static [u8]);

/// Time from a request to the first segment of its response.
const SERVICE_TIME: Duration = Duration::from_millis(60);

/// Has received all segments of a response when its request is sent, each at its instant. All are read with one look at the clock,
/// or with one look each.
struct Replay<const IN_TURNS: bool> {
    /// Time by which the segments are there before any request.
    ahead: Duration,
    service_time: Duration,
    segments: Vec<Segment>,
    events: VecDeque<(usize, Event, Duration, &'static [u8])>,
    arrived: Option<Duration>,
    /// Requests since the last wait, and the most there were.
    unsubmitted: usize,
    most_unsubmitted: Arc<AtomicUsize>,
}

impl<const IN_TURNS: bool> Network for Replay<IN_TURNS> {
    const IN_TURNS: bool = IN_TURNS;
    const SENDS_AT_ONCE: bool = !IN_TURNS;

    fn grow(&mut self) {}

    fn open(&mut self, slot: usize, _: Route<'_>, _: Option<&ServerName<'static>>) -> io::Result<()> {
        self.events.push_back((slot, Event::Opened, Duration::ZERO, b""));
        Ok(())
    }

    fn send(&mut self, slot: usize, _: &[u8]) -> io::Result<()> {
        let last = self.segments.last().map_or(Duration::ZERO, |(after, _)| *after);
        std::thread::sleep(self.service_time + last);
        self.unsubmitted += 1;
        self.most_unsubmitted.fetch_max(self.unsubmitted, Ordering::Relaxed);
        let first = wall_clock().saturating_sub(last + self.ahead);
        let read = |&(after, bytes): &Segment| {
            let event = if bytes.is_empty() { Event::Ended } else { Event::Received(bytes.len()) };
            (slot, event, first + after, bytes)
        };
        self.events.extend(self.segments.iter().map(read));
        Ok(())
    }

    fn has_sent_all(&self, _: usize) -> bool {
        true
    }

    fn queued_bytes(&self, _: usize) -> usize {
        0
    }

    fn close(&mut self, slot: usize) {
        self.events.retain(|(of, ..)| *of != slot);
    }

    fn wait(&mut self, _: Duration) -> io::Result<bool> {
        self.unsubmitted = 0;
        Ok(!self.events.is_empty())
    }

    fn sleep_through(&mut self, _: Duration) -> io::Result<bool> {
        Ok(!self.events.is_empty())
    }

    fn arrived(&self) -> Option<Duration> {
        self.arrived
    }

    fn has_read_all(&self) -> bool {
        true
    }

    fn has_more_of_read(&self) -> bool {
        matches!(self.events.front(), Some((_, Event::Ended, ..)))
    }

    fn next_event(&mut self, buffer: &mut [u8]) -> Option<(usize, Event)> {
        let (slot, event, arrived, bytes) = self.events.pop_front()?;
        self.arrived = Some(arrived);
        buffer[..bytes.len()].copy_from_slice(bytes);
        Some((slot, event))
    }
}

impl<const IN_TURNS: bool> Replay<IN_TURNS> {
    fn new(ahead: Duration, segments: &[Segment]) -> Self {
        Self {
            ahead,
            service_time: SERVICE_TIME,
            segments: segments.to_vec(),
            events: VecDeque::new(),
            arrived: None,
            unsubmitted: 0,
            most_unsubmitted: Arc::default(),
        }
    }
}

/// Sends one request and measures its response.
fn measured(segments: &[Segment]) -> Recorder {
    measured_over(Replay::<true>::new(Duration::ZERO, segments), 1, 1)
}

/// Sends requests, each client its next one after its response, and measures their responses.
fn measured_over<const IN_TURNS: bool>(network: Replay<IN_TURNS>, requests: u64, clients: usize) -> Recorder {
    let targets = resolve(&["http://127.0.0.1:9/".to_owned()], &RequestTemplate::default()).expect("a URL");
    let assignment = Assignment::new(&targets, clients, 0, 1);
    let timeline = Timeline { window_start: 0, end: 60 * SECOND, timeout: 60 * SECOND, connecting: SECOND };
    let (spare_cpu, stop) = (SpareCpu::default(), AtomicBool::new(false));
    let addresses = FoundAddresses::new(&targets.servers, None, None).expect("no thread");
    let plan = Plan {
        timeline,
        targets: &targets.servers,
        addresses: &addresses,
        choices: &targets.choices,
        sessions: (&targets.sessions, targets.steps()),
        seed: (1, 0),
        server_per: targets.server_per,
        sources: None,
        requests_per_connection: None,
        most_per_request: None,
        whole_seconds: false,
        urls: 0,
        pacing: Pacing::Auto,
        lag_tolerance: MS,
        spare_cpu: &spare_cpu,
        stop: &stop,
    };
    let quota = Some(Arc::new(AtomicU64::new(requests)));
    let (window_start, end, think_time) = (0, timeline.end, ThinkTime::NONE);
    let settings = ClosedLoopSettings {
        clients,
        stages: Vec::new(),
        threads: 1,
        think_time,
        seed: 1,
        window_start,
        end,
        quota,
    };
    let schedule = Box::new(ClosedLoop::new(settings, 0));
    let selector = Selector::new(&targets, 1, (0, 1), &assignment);
    let start = Instant::now().checked_sub(SERVICE_TIME).expect("a machine that runs for a while");
    let mut worker =
        Worker::new(plan, Http1Request::new, Http1::new, (schedule, selector), network, &assignment);
    worker.connect(&Clock::starting_at(start)).expect("no I/O");
    worker.run(&Clock::starting_at(start), |_| None).expect("no I/O").recorder
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const TOKEN: &[u8] = b"28\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\r\n7\r\n\"}}]}\n\n\r\n";

#[test]
fn gaps_are_between_segments_although_one_turn_reads_all() {
    const ROLE: &[u8] = b"2c\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"a\"}}]}\n\n\r\n";
    const END: &[u8] = b"1a\r\ndata: {\"choices\":[],\"u\":1}\r\n10\r\n\n\ndata: [DONE]\n\n\r\n0\r\n\r\n";
    let recorder = measured(&[
        (Duration::ZERO, HEAD),
        (Duration::from_millis(20), b"2\r\n:\n\r\n1\r\n\n\r\n"),
        (Duration::from_millis(30), ROLE),
        (Duration::from_millis(50), TOKEN),
        (Duration::from_millis(51), TOKEN),
        (Duration::from_millis(52), TOKEN),
        (Duration::from_millis(53), END),
    ]);
    let record = recorder.events.as_deref().expect("a stream");
    let (gaps, counts) = (record.gaps().expect("events"), record.counts());
    assert_eq!((gaps.count, gaps.min, gaps.max), (2, 1000.0, Some(1000.0)));
    assert_eq!((counts.received, counts.read_together, counts.per_response.max), (3, 0, 3));
    // The head, a comment and the role came 50, 30 and 20 ms before the first token. The resolution is a thousandth.
    let until = |times: HistogramSummary| times.p50.expect("one response") / 1e3;
    let between = until(record.first_event(0)) - until(record.first_byte(0));
    let resolution = until(record.first_event(0)) / 1e3;
    assert!((between - 50.0).abs() <= 2.0 * resolution, "{between} ms");
    assert_eq!((recorder.request_counts().completed, recorder.request_counts().failed), (1, 0));
}

#[test]
fn events_of_one_segment_have_no_time_between_them_and_are_counted() {
    const TWO: &[u8] = b"12\r\ndata: 1\n\ndata: 2\n\n\r\n";
    const LAST: &[u8] = b"9\r\ndata: 3\n\n\r\n0\r\n\r\n";
    let recorder = measured(&[
        (Duration::ZERO, HEAD),
        (Duration::from_millis(50), TWO),
        (Duration::from_millis(52), LAST),
    ]);
    let record = recorder.events.as_deref().expect("a stream");
    let (gaps, counts) = (record.gaps().expect("events"), record.counts());
    assert_eq!((gaps.count, gaps.min, gaps.max, gaps.mean), (2, 0.0, Some(2000.0), Some(1000.0)));
    assert_eq!((counts.received, counts.read_together), (3, 1));
}

#[test]
fn stream_without_content_has_no_first_event_and_ranks_above_those_with_one() {
    const FAULT: &[u8] = b"1c\r\ndata: {\"error\":{\"code\":1}}\n\n\r\n0\r\n\r\n";
    let recorder = measured(&[(Duration::ZERO, HEAD), (Duration::from_millis(50), FAULT)]);
    let record = recorder.events.as_deref().expect("a stream");
    let first_event = record.first_event(0);
    assert_eq!((first_event.count, first_event.censored, first_event.p50), (0, 1, None));
    assert_eq!((record.first_byte(0).count, record.counts().empty), (1, 1));
    assert!(record.gaps().is_none());
}

#[test]
fn end_of_a_connection_that_came_with_a_response_does_not_date_the_next_response() {
    const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let network = Replay::<false>::new(Duration::ZERO, &[(Duration::ZERO, LAST), (Duration::ZERO, b"")]);
    let recorder = measured_over(network, 2, 1);
    assert_eq!((recorder.request_counts().completed, recorder.request_counts().failed), (2, 0));
    // Both were read in one turn.
    let shortest_us = recorder.service_time.summary().min;
    assert!(shortest_us > 30e3, "{shortest_us} µs");
}

#[test]
fn bytes_that_were_there_before_a_request_are_not_its_response() {
    const REFUSED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let network = Replay::<true>::new(10 * SERVICE_TIME, &[(Duration::ZERO, REFUSED), (Duration::ZERO, b"")]);
    let recorder = measured_over(network, 2, 1);
    let requests = recorder.request_counts();
    assert_eq!((requests.completed, requests.failed, requests.status.len()), (0, 2, 0));
    assert_eq!(requests.errors, [("surplus-bytes".to_owned(), 2)].into());
}

#[test]
fn requests_with_one_reading_of_the_clock_are_submitted_in_small_batches() {
    const CLIENTS: usize = 200;
    let network = Replay::<true>::new(Duration::ZERO, &[(Duration::ZERO, OK)]);
    let network = Replay { service_time: Duration::ZERO, ..network };
    let most = Arc::clone(&network.most_unsubmitted);
    // All are due at the start, and their connections are open.
    let requests = measured_over(network, CLIENTS as u64, CLIENTS).request_counts();
    assert_eq!((requests.completed, requests.failed), (CLIENTS as u64, 0));
    assert_eq!(most.load(Ordering::Relaxed), sending::MAX_SENDS_PER_SUBMISSION);
}
