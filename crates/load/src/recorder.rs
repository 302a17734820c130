//! Measurements of one worker: histograms and counts of the window, and a small histogram per second.

use crate::clock::{Nanos, SECOND};
use crate::error::ErrorKind;
use crate::network::Security;
use crate::protocol::grpc::GrpcEnd;
use crate::second::SecondCounts;
use crate::target::Chosen;
use results::{
    Backlog, HistogramSummary, LatencyHistogram, RequestCounts, SizeSummary, UrlResult, WarmupCounts,
};
use statistics::UnansweredWaits;
use statistics::episodes::Slowest;
use std::collections::BTreeMap;
use std::mem;
use std::net::SocketAddr;

mod errors;
mod grpc;
mod per_url;
mod trend;

use errors::Errors;
pub(crate) use grpc::GrpcRecord;
use per_url::PerUrl;
use trend::Trend;

/// Number of status codes, 0 to 999; HTTP has no others.
const STATUS_CODES: usize = 1000;

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlightRequest {
    /// Index of its URL among those given.
    pub(crate) url: usize,
    /// When it was due.
    pub(crate) due: Nanos,
    /// When it was due and a connection was free for it, or would have been without a stall of the thread.
    pub(crate) sendable_at: Nanos,
    /// When it was sent.
    pub(crate) sent: Nanos,
    /// Its size in bytes.
    pub(crate) bytes: usize,
    /// When the last message of its response arrived, for responses with several.
    pub(crate) message_at: Option<Nanos>,
    /// Number of its messages that were sent, known once it has ended; 0 if it has none.
    pub(crate) messages_sent: u64,
}

/// The measurements of one worker. Its memory does not grow with the number of requests.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    window_start: Nanos,
    window_end: Nanos,
    pub(crate) response_time: LatencyHistogram,
    pub(crate) service_time: LatencyHistogram,
    pub(crate) schedule_lag: LatencyHistogram,
    pub(crate) generator_lag: LatencyHistogram,
    /// From the kernel's receipt of a response until it was read.
    pub(crate) reading_lag: LatencyHistogram,
    /// Uncertainty of the arrival of responses that were not the last of their read.
    arrival_uncertainty: Option<Box<LatencyHistogram>>,
    /// The slowest requests, from which episodes are counted.
    pub(crate) slowest: Slowest,
    trend: Trend,
    pub(crate) connect_time: LatencyHistogram,
    pub(crate) handshake_time: LatencyHistogram,
    /// Connections opened by address, of servers whose connections are spread over several.
    addresses: BTreeMap<SocketAddr, u64>,
    /// TLS sessions by the parameters that their handshakes negotiated: few kinds, unordered.
    tls_sessions: Vec<(Security, u64)>,
    /// Without its errors.
    warmup: WarmupCounts,
    sent: u64,
    completed: u64,
    /// Of those, responses after the window.
    completed_after_window: u64,
    failed: u64,
    /// Waits of requests without a response.
    unanswered_waits: UnansweredWaits,
    late: u64,
    unsent: u64,
    /// Unsent requests per server that were dropped because too many waited. Grows on demand.
    crowded_out: Vec<u64>,
    errors: Errors,
    statuses: Box<[u64; STATUS_CODES]>,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// Smallest response size.
    least_bytes: u64,
    most_bytes: u64,
    square_of_bytes: f64,
    /// `None` until the first gRPC call has ended.
    pub(crate) grpc: Option<Box<GrpcRecord>>,
    /// Empty unless asked for.
    per_url: PerUrl,
    /// The current second: by time of completion, or of sending for sends.
    second: SecondCounts,
    /// Finished seconds that have not been taken.
    finished: Vec<SecondCounts>,
    /// An empty buffer for the next second.
    spare: Option<SecondCounts>,
}

impl Recorder {
    /// Measures requests due at `window_start` or later. Those sent after `window_end` are late.
    /// `whole_seconds`: record all distributions per second, not only response times.
    pub(crate) fn new(window_start: Nanos, window_end: Nanos, whole_seconds: bool) -> Self {
        Self {
            window_start,
            window_end,
            response_time: LatencyHistogram::new(),
            service_time: LatencyHistogram::new(),
            schedule_lag: LatencyHistogram::new(),
            generator_lag: LatencyHistogram::new(),
            reading_lag: LatencyHistogram::new(),
            arrival_uncertainty: None,
            slowest: Slowest::new(),
            trend: Trend::new(window_start, window_end),
            connect_time: LatencyHistogram::new(),
            handshake_time: LatencyHistogram::new(),
            addresses: BTreeMap::new(),
            tls_sessions: Vec::new(),
            warmup: WarmupCounts::default(),
            sent: 0,
            completed: 0,
            completed_after_window: 0,
            failed: 0,
            unanswered_waits: UnansweredWaits::default(),
            late: 0,
            unsent: 0,
            crowded_out: Vec::new(),
            errors: Errors::new(),
            statuses: Box::new([0; STATUS_CODES]),
            bytes_sent: 0,
            bytes_received: 0,
            least_bytes: u64::MAX,
            most_bytes: 0,
            square_of_bytes: 0.0,
            grpc: None,
            per_url: PerUrl::default(),
            second: SecondCounts::new(0, whole_seconds),
            finished: Vec::new(),
            spare: None,
        }
    }

    /// Records each of this many URLs apart, too.
    pub(crate) fn with_urls(self, urls: usize) -> Self {
        Self { per_url: PerUrl::new(urls), ..self }
    }

    /// The schedule starts: earlier events belong to no second, and earlier errors lie before the window.
    pub(crate) fn start_seconds(&mut self) {
        self.errors.start();
        self.finished.clear();
        self.second.clear();
        self.second.index = 0;
    }

    /// Counts a connection to one of its server's addresses.
    pub(crate) fn opened_at(&mut self, address: SocketAddr) {
        *self.addresses.entry(address).or_default() += 1;
    }

    /// Connections opened by address, in the form of the result schema.
    pub(crate) fn addresses(&self) -> BTreeMap<String, u64> {
        self.addresses.iter().map(|(address, count)| (address.to_string(), *count)).collect()
    }

    /// Counts a new TLS session.
    pub(crate) fn secured(&mut self, security: Security) {
        self.add_sessions(security, 1);
    }

    fn add_sessions(&mut self, security: Security, sessions: u64) {
        match self.tls_sessions.iter_mut().find(|(kind, _)| *kind == security) {
            Some((_, count)) => *count += sessions,
            None => self.tls_sessions.push((security, sessions)),
        }
    }

    /// The run was interrupted: the window ends at this time.
    pub(crate) fn end_window(&mut self, at: Nanos) {
        self.window_end = self.window_end.min(at);
    }

    fn measures(&self, flight: &InFlightRequest) -> bool {
        flight.due >= self.window_start
    }

    /// Records that a request was sent.
    pub(crate) fn sent(&mut self, flight: &InFlightRequest) {
        if !self.measures(flight) {
            self.warmup.sent += 1;
            return;
        }
        self.sent += 1;
        self.per_url.sent(flight.url);
        self.late += u64::from(flight.sent > self.window_end);
        self.bytes_sent += flight.bytes as u64;
        let schedule_lag = flight.sent.saturating_sub(flight.due);
        self.schedule_lag.record_ns(schedule_lag);
        self.enter_second(flight.sent);
        self.second.sent += 1;
        self.second.bytes_sent += flight.bytes as u64;
        if let Some(detail) = &mut self.second.detail {
            detail.schedule_lag.record_ns(schedule_lag);
        }
        self.generator_lag.record_ns(flight.sent.saturating_sub(flight.sendable_at));
    }

    /// Records a complete response. `bytes`: its size.
    pub(crate) fn completed(&mut self, flight: &InFlightRequest, at: Nanos, status: u16, bytes: u64) {
        self.trend.ended(flight.due, at);
        if !self.measures(flight) {
            self.warmup.completed += 1;
            let is_in_window = (self.window_start..=self.window_end).contains(&at);
            self.warmup.completed_in_window += u64::from(is_in_window);
            return;
        }
        self.completed += 1;
        self.completed_after_window += u64::from(at > self.window_end);
        self.bytes_received += bytes;
        self.least_bytes = self.least_bytes.min(bytes);
        self.most_bytes = self.most_bytes.max(bytes);
        self.square_of_bytes += (bytes as f64).powi(2);
        self.statuses[usize::from(status).min(STATUS_CODES - 1)] += 1;
        self.enter_second(at);
        let response_time = at.saturating_sub(flight.due);
        let service_time = at.saturating_sub(flight.sent);
        self.response_time.record_ns(response_time);
        self.per_url.completed(flight.url, response_time);
        self.slowest.answered(flight.due, response_time);
        self.service_time.record_ns(service_time);
        self.second.completed += 1;
        self.second.bytes_received += bytes;
        self.second.status(status, 1);
        self.second.response_time.record_ns(response_time);
        if let Some(detail) = &mut self.second.detail {
            detail.service_time.record_ns(service_time);
        }
    }

    /// Records how long after its arrival in the kernel a response was read.
    pub(crate) fn read_late(&mut self, flight: &InFlightRequest, lag: Nanos) {
        if self.measures(flight) {
            self.reading_lag.record_ns(lag);
        }
    }

    /// Records that other bytes followed a response in its read: it came at its time or up to `uncertainty` sooner.
    pub(crate) fn read_with_others(&mut self, flight: &InFlightRequest, uncertainty: Nanos) {
        if self.measures(flight) {
            self.arrival_uncertainty.get_or_insert_default().record_ns(uncertainty);
        }
    }

    /// Uncertainty of the arrival of each response.
    pub(crate) fn arrival_uncertainty(&self) -> HistogramSummary {
        let mut of_all = self.arrival_uncertainty.as_deref().cloned().unwrap_or_default();
        of_all.record_zeros(self.completed - of_all.count());
        of_all.summary()
    }

    /// Records the end of a gRPC call.
    pub(crate) fn call_ended(&mut self, flight: &InFlightRequest, end: GrpcEnd) {
        if self.measures(flight) {
            let grpc = self.grpc.get_or_insert_default();
            grpc.ended(end.status);
            grpc.count(flight.messages_sent, end.messages);
        }
    }

    /// Records messages of a response, which may have more. All that was read with them came after `came_after`.
    pub(crate) fn messages(
        &mut self,
        flight: &mut InFlightRequest,
        messages: u32,
        at: Nanos,
        came_after: Nanos,
    ) {
        if self.measures(flight) {
            self.grpc.get_or_insert_default().received(flight, messages, at, came_after);
        }
    }

    /// Records a failed request.
    pub(crate) fn failed(&mut self, flight: &InFlightRequest, at: Nanos, kind: ErrorKind) {
        self.trend.ended(flight.due, at);
        if self.measures(flight) {
            self.error(kind, at);
            self.failed += 1;
            let waited = at.saturating_sub(flight.due);
            self.per_url.failed(flight.url, waited);
            self.unanswered_waits.record_ns(waited, 1);
            self.slowest.failed(flight.due, at);
            self.second.failed += 1;
            if flight.messages_sent > 0 {
                self.grpc.get_or_insert_default().count(flight.messages_sent, 0);
            }
        } else {
            self.warmup.failed += 1;
            self.errors.count(kind, true);
        }
    }

    /// Records an error outside of any request. Before the window it counts apart, and in no second.
    pub(crate) fn error(&mut self, kind: ErrorKind, at: Nanos) {
        let is_before = at < self.window_start;
        self.errors.count(kind, is_before);
        if !is_before {
            self.enter_second(at);
            self.second.error(kind);
        }
    }

    /// Counts an attempt that failed at one address of a server, which has others.
    pub(crate) fn fell_back(&mut self, kind: ErrorKind) {
        self.errors.fell_back(kind);
    }

    /// The commonest failure at a server's first addresses, and how many attempts failed there.
    pub(crate) fn fallbacks(&self) -> Option<(ErrorKind, u64)> {
        self.errors.fallbacks()
    }

    /// Counts requests that were due in the window, at this time or shortly before, and not sent: all had waited for this long, or
    /// longer. `url_of_next` is called for each of them if URLs are measured apart.
    pub(crate) fn unsent(
        &mut self,
        requests: u64,
        due: Nanos,
        waited: Nanos,
        mut url_of_next: impl FnMut() -> usize,
    ) {
        self.unsent += requests;
        self.trend.took(due, waited, requests);
        self.unanswered_waits.record_ns(waited, requests);
        if !self.per_url.is_empty() {
            (0..requests).for_each(|_| self.per_url.unsent(url_of_next(), waited));
        }
    }

    /// Counts a request that was dropped at this time because too many wait for its server.
    pub(crate) fn crowded_out(&mut self, due: Nanos, at: Nanos, chosen: &Chosen) {
        if due >= self.window_start {
            self.unsent(1, due, at.saturating_sub(due), || chosen.choice);
            self.add_crowded_out(chosen.server, 1);
        }
    }

    fn add_crowded_out(&mut self, server: usize, requests: u64) {
        if self.crowded_out.len() <= server {
            self.crowded_out.resize(server + 1, 0);
        }
        self.crowded_out[server] += requests;
    }

    /// The server with most of the requests dropped because too many waited, and the number of all such
    /// requests; `None` if there were none.
    pub(crate) fn most_crowded(&self) -> Option<(usize, u64)> {
        let (server, _) = self
            .crowded_out
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .max_by_key(|(_, count)| **count)?;
        Some((server, self.crowded_out.iter().sum()))
    }

    /// Finishes the current second if another one has begun. What comes after the window is in no second of it, even if the
    /// window ends within one.
    fn enter_second(&mut self, now: Nanos) {
        let index = now.saturating_sub(self.window_start) / SECOND;
        let of_window = self.window_end.saturating_sub(self.window_start).div_ceil(SECOND);
        let is_after = now > self.window_end;
        self.begin_second(if is_after {
            index.max(of_window)
        } else {
            index.min(of_window.saturating_sub(1))
        });
    }

    fn begin_second(&mut self, index: u64) {
        if index > self.second.index {
            let mut next =
                self.spare.take().unwrap_or_else(|| SecondCounts::new(index, self.second.detail.is_some()));
            next.index = index;
            let begin = self.window_start + self.second.index * SECOND;
            self.second.length = self.window_end.saturating_sub(begin).min(SECOND);
            self.finished.push(mem::replace(&mut self.second, next));
        }
    }

    /// Returns the seconds that are finished at `now`. `connections_open`: at this time.
    pub(crate) fn take_seconds(&mut self, now: Nanos, connections_open: usize) -> Vec<SecondCounts> {
        self.enter_second(now);
        self.take_finished(connections_open)
    }

    fn take_finished(&mut self, connections_open: usize) -> Vec<SecondCounts> {
        if let Some(last) = self.finished.last_mut() {
            last.connections_open = connections_open;
        }
        mem::take(&mut self.finished)
    }

    /// Returns the last second, too: nothing more will be recorded.
    pub(crate) fn take_last_seconds(&mut self, connections_open: usize) -> Vec<SecondCounts> {
        self.begin_second(self.second.index + 1);
        self.take_finished(connections_open)
    }

    /// Takes back a second that was handed out, cleared, to reuse its memory.
    pub(crate) fn reuse(&mut self, second: SecondCounts) {
        self.spare = Some(second);
    }

    /// Adds the measurements of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.response_time, &other.response_time),
            (&mut self.service_time, &other.service_time),
            (&mut self.schedule_lag, &other.schedule_lag),
            (&mut self.generator_lag, &other.generator_lag),
            (&mut self.reading_lag, &other.reading_lag),
            (&mut self.connect_time, &other.connect_time),
            (&mut self.handshake_time, &other.handshake_time),
        ] {
            mine.merge(theirs);
        }
        self.slowest.merge(&other.slowest);
        self.trend.merge(&other.trend);
        self.per_url.merge(&other.per_url);
        for (mine, theirs) in [
            (&mut self.warmup.sent, other.warmup.sent),
            (&mut self.warmup.completed, other.warmup.completed),
            (&mut self.warmup.completed_in_window, other.warmup.completed_in_window),
            (&mut self.warmup.failed, other.warmup.failed),
            (&mut self.sent, other.sent),
            (&mut self.completed, other.completed),
            (&mut self.completed_after_window, other.completed_after_window),
            (&mut self.failed, other.failed),
            (&mut self.late, other.late),
            (&mut self.unsent, other.unsent),
            (&mut self.bytes_sent, other.bytes_sent),
            (&mut self.bytes_received, other.bytes_received),
        ] {
            *mine += theirs;
        }
        for (server, requests) in other.crowded_out.iter().enumerate() {
            self.add_crowded_out(server, *requests);
        }
        for (address, count) in &other.addresses {
            *self.addresses.entry(*address).or_default() += count;
        }
        for (security, sessions) in &other.tls_sessions {
            self.add_sessions(*security, *sessions);
        }
        self.unanswered_waits.merge(&other.unanswered_waits);
        self.least_bytes = self.least_bytes.min(other.least_bytes);
        self.most_bytes = self.most_bytes.max(other.most_bytes);
        self.square_of_bytes += other.square_of_bytes;
        if let Some(theirs) = &other.arrival_uncertainty {
            self.arrival_uncertainty.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.grpc {
            self.grpc.get_or_insert_default().merge(theirs);
        }
        self.errors.merge(&other.errors);
        for (mine, theirs) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *mine += theirs;
        }
    }

    /// Response times, and what percentiles among requests without a response (failed, or never sent) are greater than,
    /// microseconds.
    pub(crate) fn response_times(&self) -> (HistogramSummary, Option<f64>) {
        let times = self.response_time.summary_with(self.unanswered_waits.count());
        let above_us = self.unanswered_waits.above_us(times.count, self.response_time.max_us(), 0);
        (times, above_us)
    }

    /// Waits of requests without a response, in the form of the result schema.
    pub(crate) fn unanswered_waits_us(&self) -> Vec<(f64, u64)> {
        self.unanswered_waits.to_entries()
    }

    /// The record of each URL, in the order given; empty unless asked for.
    pub(crate) fn url_results(&self, urls: &[String]) -> Vec<UrlResult> {
        self.per_url.results(urls)
    }

    /// TLS sessions by version and cipher, in the form of the result schema.
    pub(crate) fn tls_sessions(&self) -> BTreeMap<String, u64> {
        self.count_sessions(|Security { version, cipher, resumed, .. }| {
            format!("{version:?} {cipher:?}{}", if *resumed { " resumed" } else { "" })
        })
    }

    /// TLS sessions by the server's key.
    pub(crate) fn tls_server_keys(&self) -> BTreeMap<String, u64> {
        self.count_sessions(|security| security.server_key.to_string())
    }

    fn count_sessions(&self, name: impl Fn(&Security) -> String) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (security, sessions) in &self.tls_sessions {
            *counts.entry(name(security)).or_default() += sessions;
        }
        counts
    }

    /// Sizes of the responses.
    pub(crate) fn response_sizes(&self) -> SizeSummary {
        if self.completed == 0 {
            return SizeSummary::default();
        }
        let count = self.completed as f64;
        let mean = self.bytes_received as f64 / count;
        // Rounding may yield slightly less than zero if all sizes are equal.
        let variance = (self.square_of_bytes / count - mean * mean).max(0.0);
        SizeSummary {
            count: self.completed,
            min: self.least_bytes,
            mean,
            stddev: variance.sqrt(),
            max: self.most_bytes,
        }
    }

    /// Requests sent within the window.
    pub(crate) fn sent_in_window(&self) -> u64 {
        self.sent - self.late
    }

    /// Responses received within the window, those to requests from before it included: what the target answered meanwhile.
    pub(crate) fn answered_in_window(&self) -> u64 {
        self.completed - self.completed_after_window + self.warmup.completed_in_window
    }

    /// Counts of what came before the window, in the form of the result schema.
    pub(crate) fn warmup_counts(&self) -> WarmupCounts {
        WarmupCounts { errors: self.errors.before_window(), ..self.warmup.clone() }
    }

    /// The backlog throughout the window, in the form of the result schema. `offered_until`: requests that the schedule offers until
    /// a time of the window, on average.
    pub(crate) fn backlog(&self, offered_until: impl Fn(Nanos) -> f64) -> Backlog {
        self.trend.backlog(offered_until)
    }

    /// Request counts in the form of the result schema.
    pub(crate) fn request_counts(&self) -> RequestCounts {
        // 0 means a response of a protocol without statuses.
        let statuses = self.statuses.iter().enumerate().skip(1).filter(|(_, count)| **count > 0);
        let status = statuses.map(|(code, count)| (code.to_string(), *count));
        RequestCounts {
            scheduled: self.sent + self.unsent,
            sent: self.sent,
            late: self.late,
            unsent: self.unsent,
            completed: self.completed,
            completed_after_window: self.completed_after_window,
            failed: self.failed,
            errors: self.errors.of_window(),
            status: status.collect(),
            unexpected_status: None,
            grpc_status: self.grpc.as_deref().map(GrpcRecord::statuses).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn request_without_place_to_wait_has_waited_since_it_was_due() {
        let mut recorder = Recorder::new(0, SECOND, false).with_urls(2);
        let chosen = Chosen { choice: 1, server: 0, request: 0, numbers: Vec::new() };
        recorder.crowded_out(5 * MS, 45 * MS, &chosen);
        let (times, above_us) = recorder.response_times();
        assert_eq!((times.count, times.censored, recorder.request_counts().unsent), (0, 1, 1));
        // Waits are grouped by three significant digits.
        assert!(above_us.is_some_and(|above_us| (39_900.0..=40_000.0).contains(&above_us)), "{above_us:?}");
        let urls = recorder.url_results(&["http://a/".to_owned(), "http://b/".to_owned()]);
        assert_eq!(urls.iter().map(|url| url.unsent).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(urls[1].censored_above_us, above_us);
    }

    fn due_at(due: Nanos) -> InFlightRequest {
        let sent = due;
        InFlightRequest { url: 0, due, sendable_at: due, sent, bytes: 0, message_at: None, messages_sent: 0 }
    }

    fn counted(errors: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
        errors.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
    }

    #[test]
    fn errors_before_the_window_are_apart_from_those_of_its_requests() {
        // The window is the second from 1000 ms on. An attempt to connect fails before the schedule starts.
        let mut recorder = Recorder::new(SECOND, 2 * SECOND, false);
        recorder.error(ErrorKind::ConnectRefused, 5 * MS);
        let never_started = recorder.clone();
        assert_eq!(counted(&never_started.request_counts().errors), [("connect-refused", 1)]);
        assert!(never_started.warmup_counts().errors.is_empty(), "there is no window");
        recorder.start_seconds();
        recorder.error(ErrorKind::ConnectTimeout, 900 * MS);
        recorder.failed(&due_at(990 * MS), 1500 * MS, ErrorKind::Timeout);
        recorder.failed(&due_at(1100 * MS), 1600 * MS, ErrorKind::Reset);
        recorder.error(ErrorKind::Closed, 1700 * MS);
        let seconds = recorder.take_last_seconds(0);
        let mut all = Recorder::new(SECOND, 2 * SECOND, false);
        all.merge(&recorder);
        assert_eq!(counted(&all.request_counts().errors), [("closed", 1), ("reset", 1)]);
        let before = [("connect-refused", 1), ("connect-timeout", 1), ("timeout", 1)];
        assert_eq!(counted(&all.warmup_counts().errors), before);
        assert_eq!((all.request_counts().failed, all.warmup_counts().failed), (1, 1));
        let in_seconds =
            seconds.into_iter().flat_map(|second| second.told(jiff::Timestamp::UNIX_EPOCH, None).errors);
        assert_eq!(in_seconds.collect::<Vec<_>>(), [(ErrorKind::Reset, 1), (ErrorKind::Closed, 1)]);
    }

    #[test]
    fn seconds_and_throughput_add_up_with_what_came_over_the_edges_of_the_window() {
        let mut recorder = Recorder::new(SECOND, 2 * SECOND, false);
        recorder.start_seconds();
        // Due before the window: answered before it, in it and after it. Due in it: answered in it and after it.
        for (due, at) in
            [(500, 900), (900, 1000), (990, 1500), (995, 2001), (1000, 1200), (1100, 2000), (1900, 2001)]
        {
            recorder.completed(&due_at(due * MS), at * MS, 200, 1);
        }
        let (requests, warmup) = (recorder.request_counts(), recorder.warmup_counts());
        assert_eq!((requests.completed, requests.completed_after_window), (3, 1));
        assert_eq!((warmup.completed, warmup.completed_in_window), (4, 2));
        assert_eq!(recorder.answered_in_window(), 4);
        let seconds = recorder.take_last_seconds(0);
        let completed: Vec<_> = seconds.iter().map(|second| (second.index, second.completed)).collect();
        assert_eq!(completed, [(0, 2), (1, 1)]);
    }

    #[test]
    fn last_second_of_a_window_that_ended_early_is_as_long_as_its_part_of_the_window() {
        // Two workers of a planned hour; the fixed number of requests is used up after 2.3 s.
        let seconds_until = |end_ms: u64| {
            let mut recorder = Recorder::new(SECOND, 3601 * SECOND, false);
            recorder.start_seconds();
            for at in (0..end_ms).step_by(100) {
                recorder.completed(&due_at(SECOND), SECOND + at * MS, 200, 1);
            }
            recorder.end_window(SECOND + end_ms * MS);
            recorder.completed(&due_at(SECOND), SECOND + (end_ms + 50) * MS, 200, 1);
            recorder.take_last_seconds(0)
        };
        let mut merged: BTreeMap<u64, SecondCounts> = BTreeMap::new();
        for second in [1900, 2300].into_iter().flat_map(seconds_until) {
            merged
                .entry(second.index)
                .or_insert_with(|| SecondCounts::new(second.index, false))
                .merge(&second);
        }
        let told = merged.into_values().map(|second| second.told(jiff::Timestamp::UNIX_EPOCH, None));
        let told: Vec<_> =
            told.map(|second| (second.point.t_s, second.length_s, second.point.completed)).collect();
        // The last one is after the window: it has a late response.
        assert_eq!(told, [(0.0, 1.0, 20), (1.0, 1.0, 19), (2.0, 0.3, 4), (3.0, 1.0, 1)]);
    }

    #[test]
    fn late_responses_are_in_no_second_of_a_window_that_ends_within_one() {
        let mut recorder = Recorder::new(SECOND, 2500 * MS, false);
        recorder.start_seconds();
        for at in [1500, 2400, 2500, 2501, 2900, 3100] {
            recorder.completed(&due_at(1200 * MS), at * MS, 200, 1);
        }
        let seconds = recorder.take_last_seconds(0);
        let completed: Vec<_> = seconds.iter().map(|second| (second.index, second.completed)).collect();
        assert_eq!(completed, [(0, 1), (1, 2), (2, 3)]);
    }
}
