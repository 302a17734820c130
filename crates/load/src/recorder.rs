//! Measurements of one worker: histograms and counts of the window, and a small histogram per second.

use crate::clock::Nanos;
use crate::error::ErrorKind;
use crate::network::Security;
use crate::protocol::grpc::GrpcEnd;
use crate::second::SecondCounts;
use crate::target::{Address, Chosen, SessionKind};
use results::{FIRST_ERROR_STATUS, IdleCloses, LatencyHistogram, WarmupCounts};
use statistics::UnansweredWaits;
use statistics::episodes::Slowest;
use std::collections::BTreeMap;

mod errors;
mod events;
mod flight;
mod grpc;
mod messages;
mod per_url;
mod result;
mod seconds;
mod sessions;
mod sizes;
#[cfg(test)]
mod tests;
mod trend;

use errors::Errors;
pub(crate) use events::EventRecord;
pub(crate) use flight::InFlightRequest;
use flight::is_arrival;
pub(crate) use grpc::GrpcRecord;
use per_url::PerUrl;
pub(crate) use sessions::SessionEnd;
use sessions::Sessions;
use sizes::Sizes;
use trend::Trend;

/// Number of status codes, 0 to 999; HTTP has no others.
const STATUS_CODES: usize = 1000;

/// Requests for one of several servers that were due in the window and never sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct UnsentFor {
    pub(crate) unsent: u64,
    /// Of these, those that were dropped because too many waited.
    pub(crate) crowded_out: u64,
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
    addresses: BTreeMap<Address, u64>,
    /// Connections at each of these addresses at the end, those that are to be there included.
    addresses_at_end: BTreeMap<Address, u64>,
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
    /// By server. Grows on demand.
    unsent_for: Vec<UnsentFor>,
    errors: Errors,
    idle_closes: IdleCloses,
    statuses: Box<[u64; STATUS_CODES]>,
    /// Of these, those that checks judge, as far as they would be errors otherwise.
    judged_statuses: BTreeMap<u16, u64>,
    pub(crate) bytes_sent: u64,
    pub(crate) response_sizes: Sizes,
    /// `None` until the first stream of events has begun.
    pub(crate) events: Option<Box<EventRecord>>,
    /// `None` until the first gRPC call has ended.
    pub(crate) grpc: Option<Box<GrpcRecord>>,
    /// Empty unless asked for.
    per_url: PerUrl,
    /// Empty unless sessions are due.
    sessions: Sessions,
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
            addresses_at_end: BTreeMap::new(),
            tls_sessions: Vec::new(),
            warmup: WarmupCounts::default(),
            sent: 0,
            completed: 0,
            completed_after_window: 0,
            failed: 0,
            unanswered_waits: UnansweredWaits::default(),
            late: 0,
            unsent: 0,
            unsent_for: Vec::new(),
            errors: Errors::new(),
            idle_closes: IdleCloses::default(),
            statuses: Box::new([0; STATUS_CODES]),
            judged_statuses: BTreeMap::new(),
            bytes_sent: 0,
            response_sizes: Sizes::default(),
            events: None,
            grpc: None,
            per_url: PerUrl::default(),
            sessions: Sessions::default(),
            second: SecondCounts::new(0, whole_seconds),
            finished: Vec::new(),
            spare: None,
        }
    }

    /// Records each of this many URLs or kinds of requests apart, too.
    pub(crate) fn with_urls(self, urls: usize) -> Self {
        Self { per_url: PerUrl::new(urls), ..self }
    }

    /// Records sessions of these kinds.
    pub(crate) fn with_sessions(self, kinds: &[SessionKind]) -> Self {
        Self { sessions: Sessions::new(kinds), ..self }
    }

    /// Records that a session has begun.
    pub(crate) fn session_arrived(&mut self, kind: usize, due: Nanos) {
        if due >= self.window_start {
            self.sessions.arrived(kind);
        }
    }

    /// Records the end of a session.
    pub(crate) fn session_ended(&mut self, end: SessionEnd) {
        if end.arrived >= self.window_start {
            self.sessions.ended(end);
        }
    }

    /// Counts a connection to one of its server's addresses.
    pub(crate) fn opened_at(&mut self, address: &Address) {
        *self.addresses.entry(address.clone()).or_default() += 1;
    }

    /// Counts a connection at the end of the window: the address at which it is to be, and the one at which it is.
    pub(crate) fn ends_at(&mut self, home: &Address, address: Option<&Address>) {
        for (address, count) in [(Some(home), 0), (address, 1)] {
            if let Some(address) = address {
                *self.addresses_at_end.entry(address.clone()).or_default() += count;
            }
        }
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

    /// Records the size of a request that was recorded as sent before it was known.
    pub(crate) fn sent_bytes(&mut self, flight: &InFlightRequest) {
        if self.measures(flight) {
            self.bytes_sent += flight.bytes as u64;
            self.second.bytes_sent += flight.bytes as u64;
        }
    }

    /// Records a complete response. `bytes`: its size.
    pub(crate) fn completed(&mut self, flight: &InFlightRequest, at: Nanos, status: u16, bytes: u64) {
        if flight.is_arrival() {
            self.trend.ended(flight.due, at);
        }
        if !self.measures(flight) {
            self.warmup.completed += 1;
            let is_in_window = (self.window_start..=self.window_end).contains(&at);
            self.warmup.completed_in_window += u64::from(is_in_window);
            return;
        }
        self.completed += 1;
        self.completed_after_window += u64::from(at > self.window_end);
        self.response_sizes.record(bytes);
        self.stream_ended(flight, true);
        self.statuses[usize::from(status).min(STATUS_CODES - 1)] += 1;
        self.enter_second(at);
        let response_time = at.saturating_sub(flight.due);
        let service_time = at.saturating_sub(flight.sent);
        self.response_time.record_ns(response_time);
        self.per_url.completed(flight.url, response_time, status);
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

    /// Notes that a check has judged the status of a recorded response.
    pub(crate) fn judged(&mut self, flight: &InFlightRequest, status: u16) {
        if status >= FIRST_ERROR_STATUS && self.measures(flight) {
            *self.judged_statuses.entry(status).or_default() += 1;
        }
    }

    /// Records a response that failed a check: its request has failed, and its status is counted.
    pub(crate) fn check_failed(&mut self, flight: &InFlightRequest, at: Nanos, status: u16, kind: ErrorKind) {
        self.failed(flight, at, kind);
        if self.measures(flight) {
            self.statuses[usize::from(status).min(STATUS_CODES - 1)] += 1;
            self.per_url.status(flight.url, status);
        }
        self.judged(flight, status);
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

    /// Records the end of a gRPC call.
    pub(crate) fn call_ended(&mut self, flight: &InFlightRequest, end: GrpcEnd) {
        if self.measures(flight) {
            let grpc = self.grpc.get_or_insert_default();
            grpc.ended(end.status);
            grpc.count(flight.messages_sent, end.messages);
        }
    }

    /// Records that a response has begun that is a stream of events.
    pub(crate) fn stream_begun(&mut self, flight: &mut InFlightRequest, at: Nanos) {
        flight.events = Some(0);
        if self.measures(flight) {
            self.events.get_or_insert_default().begun(flight, flight.first_byte_at.unwrap_or(at));
        }
    }

    /// Records the end of a request whose response may be a stream of events.
    fn stream_ended(&mut self, flight: &InFlightRequest, is_whole: bool) {
        if let (Some(record), Some(events)) = (&mut self.events, flight.events) {
            record.ended(events, is_whole);
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
        if !self.measures(flight) {
            return;
        }
        let times = match &mut flight.events {
            Some(events) => {
                *events += u64::from(messages);
                &mut self.events.get_or_insert_default().times
            }
            None => &mut self.grpc.get_or_insert_default().times,
        };
        times.received(flight, messages, at, came_after);
    }

    /// Records a failed request.
    pub(crate) fn failed(&mut self, flight: &InFlightRequest, at: Nanos, kind: ErrorKind) {
        if flight.is_arrival() {
            self.trend.ended(flight.due, at);
        }
        if self.measures(flight) {
            self.error(kind, at);
            self.failed += 1;
            let waited = at.saturating_sub(flight.due);
            self.per_url.failed(flight.url, waited, kind);
            self.unanswered_waits.record_ns(waited, 1);
            self.slowest.failed(flight.due, at);
            self.second.failed += 1;
            self.stream_ended(flight, false);
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

    /// Counts a connection that the peer closed in the window while no request was under way on it.
    pub(crate) fn closed_idle(&mut self, at: Nanos) {
        let is_in_window = (self.window_start..=self.window_end).contains(&at);
        self.idle_closes.connections += u64::from(is_in_window);
    }

    /// Counts a failed request that was sent on a connection which the peer closed, and which had been idle until then.
    pub(crate) fn lost_on_idle(&mut self, flight: &InFlightRequest) {
        self.idle_closes.requests += u64::from(self.measures(flight));
    }

    /// Counts an attempt that failed at one address of a server, which has others.
    pub(crate) fn fell_back(&mut self, kind: ErrorKind) {
        self.errors.fell_back(kind);
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
        self.trend.took(due, waited, requests);
        self.not_sent(requests, waited, &mut url_of_next);
    }

    /// Counts a selected request that was due in the window, and was not sent.
    pub(crate) fn chosen_unsent(&mut self, due: Nanos, waited: Nanos, chosen: &Chosen) {
        self.unsent_for(chosen.server).unsent += 1;
        if is_arrival(chosen.step) {
            self.unsent(1, due, waited, || chosen.choice);
        } else {
            self.step_unsent(waited, chosen.choice);
        }
    }

    /// Counts a later step of a session that was due in the window, and was not sent.
    pub(crate) fn step_unsent(&mut self, waited: Nanos, url: usize) {
        self.not_sent(1, waited, &mut || url);
    }

    fn not_sent(&mut self, requests: u64, waited: Nanos, url_of_next: &mut dyn FnMut() -> usize) {
        self.unsent += requests;
        self.unanswered_waits.record_ns(waited, requests);
        if !self.per_url.is_empty() {
            (0..requests).for_each(|_| self.per_url.unsent(url_of_next(), waited));
        }
    }

    /// Counts a request that was dropped at this time because too many wait for its server.
    pub(crate) fn crowded_out(&mut self, due: Nanos, at: Nanos, chosen: &Chosen) {
        if due >= self.window_start {
            self.chosen_unsent(due, at.saturating_sub(due), chosen);
            self.unsent_for(chosen.server).crowded_out += 1;
        }
    }

    fn unsent_for(&mut self, server: usize) -> &mut UnsentFor {
        if self.unsent_for.len() <= server {
            self.unsent_for.resize(server + 1, UnsentFor::default());
        }
        &mut self.unsent_for[server]
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
        self.sessions.merge(&other.sessions);
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
            (&mut self.idle_closes.connections, other.idle_closes.connections),
            (&mut self.idle_closes.requests, other.idle_closes.requests),
        ] {
            *mine += theirs;
        }
        for (server, theirs) in other.unsent_for.iter().enumerate() {
            let mine = self.unsent_for(server);
            mine.unsent += theirs.unsent;
            mine.crowded_out += theirs.crowded_out;
        }
        for (mine, theirs) in
            [(&mut self.addresses, &other.addresses), (&mut self.addresses_at_end, &other.addresses_at_end)]
        {
            for (address, count) in theirs {
                *mine.entry(address.clone()).or_default() += count;
            }
        }
        for (security, sessions) in &other.tls_sessions {
            self.add_sessions(*security, *sessions);
        }
        self.unanswered_waits.merge(&other.unanswered_waits);
        self.response_sizes.merge(&other.response_sizes);
        if let Some(theirs) = &other.arrival_uncertainty {
            self.arrival_uncertainty.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.events {
            self.events.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.grpc {
            self.grpc.get_or_insert_default().merge(theirs);
        }
        for (status, count) in &other.judged_statuses {
            *self.judged_statuses.entry(*status).or_default() += count;
        }
        self.errors.merge(&other.errors);
        for (mine, theirs) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *mine += theirs;
        }
    }
}
