//! Streams of events over a network whose bytes arrive at given instants.

use super::*;
use crate::network::{Event, Route, wall_clock};
use crate::protocol::http1::{Http1, Http1Request};
use crate::schedule::{ClosedLoop, ClosedLoopSettings, ThinkTime};
use crate::target::{RequestTemplate, resolve};
use results::HistogramSummary;
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

const MS: Nanos = 1_000_000;

/// A segment: its arrival, since the first, and its bytes; without any, the end of the connection in the segment before.
type Segment = (Duration, &'static [u8]);

/// Time from one response to the next.
const BETWEEN_RESPONSES: Duration = Duration::from_millis(60);

/// Has received all segments of a response when its request is sent, each at its instant. All are read in one turn.
struct Replay {
    /// Arrival of the first segment of the next response, by [`wall_clock`].
    first: Duration,
    segments: Vec<Segment>,
    events: VecDeque<(Event, Duration, &'static [u8])>,
    arrived: Option<Duration>,
}

impl Network for Replay {
    const IN_TURNS: bool = true;
    const SENDS_AT_ONCE: bool = true;

    fn grow(&mut self) {}

    fn open(&mut self, _: usize, _: Route<'_>, _: Option<&ServerName<'static>>) -> io::Result<()> {
        self.events.push_back((Event::Opened, Duration::ZERO, b""));
        Ok(())
    }

    fn send(&mut self, _: usize, _: &[u8]) -> io::Result<()> {
        let first = self.first;
        let read = |&(after, bytes): &Segment| {
            let event = if bytes.is_empty() { Event::Ended } else { Event::Received(bytes.len()) };
            (event, first + after, bytes)
        };
        self.events.extend(self.segments.iter().map(read));
        self.first += BETWEEN_RESPONSES;
        Ok(())
    }

    fn has_sent_all(&self, _: usize) -> bool {
        true
    }

    fn queued_bytes(&self, _: usize) -> usize {
        0
    }

    fn close(&mut self, _: usize) {
        self.events.clear();
    }

    fn wait(&mut self, _: Duration) -> io::Result<bool> {
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
        matches!(self.events.front(), Some((Event::Ended, ..)))
    }

    fn next_event(&mut self, buffer: &mut [u8]) -> Option<(usize, Event)> {
        let (event, arrived, bytes) = self.events.pop_front()?;
        self.arrived = Some(arrived);
        buffer[..bytes.len()].copy_from_slice(bytes);
        Some((0, event))
    }
}

/// Sends one request and measures its response.
fn measured(segments: &[Segment]) -> Recorder {
    measured_times(1, segments)
}

/// Sends requests, each after the response before, and measures their responses.
fn measured_times(requests: u64, segments: &[Segment]) -> Recorder {
    let targets = resolve(&["http://127.0.0.1:9/".to_owned()], &RequestTemplate::default()).expect("a URL");
    let assignment = Assignment::new(&targets, 1, 0, 1);
    let timeline = Timeline { window_start: 0, end: 60 * SECOND, timeout: 60 * SECOND, connecting: SECOND };
    let (spare_cpu, stop) = (SpareCpu::default(), AtomicBool::new(false));
    let plan = Plan {
        timeline,
        targets: &targets.servers,
        choices: &targets.choices,
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
        clients: 1,
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
    // All segments arrive after the start, in which the request is due: however long the worker takes to send it.
    let start = Instant::now().checked_sub(Duration::from_secs(1)).expect("a machine that runs for a second");
    let first = wall_clock().saturating_sub(Duration::from_millis(200));
    let network = Replay { first, segments: segments.to_vec(), events: VecDeque::new(), arrived: None };
    let mut worker =
        Worker::new(plan, Http1Request::new, Http1::new, (schedule, selector), network, &assignment);
    worker.connect(&Clock::starting_at(start)).expect("no I/O");
    worker.run(&Clock::starting_at(start), |_| None).expect("no I/O").recorder
}

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
    // The head, a comment and the role came 50, 30 and 20 ms before the first token. Resolution at a second: 0.5 ms.
    let until = |times: HistogramSummary| times.p50.expect("one response") / 1e3;
    let between = until(record.first_event(0)) - until(record.first_byte(0));
    assert!((between - 50.0).abs() <= 1.0, "{between} ms");
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
    let recorder = measured_times(2, &[(Duration::ZERO, LAST), (Duration::ZERO, b"")]);
    assert_eq!((recorder.request_counts().completed, recorder.request_counts().failed), (2, 0));
    // Both were read in one turn.
    let lag = recorder.reading_lag.summary();
    let between_us = lag.max.expect("all are answered") - lag.min;
    assert!(between_us > 30e3, "{between_us} µs");
}
