//! `meshmeter.load/1`: result of one run of the load generator.

use crate::arrivals::{Arrivals, ClientStage};
use crate::backlog::Backlog;
use crate::build::Build;
use crate::connection::{ConnectionSettings, IdleCloses};
use crate::expected_statuses::{ExpectedStatuses, is_error_by_default};
use crate::export::ExportRecord;
use crate::grpc::{GRPC_STATUS_NAMES, GrpcMessages};
use crate::histogram::{HistogramSummary, SizeSummary};
use crate::objective::ObjectiveResult;
use crate::sessions::SessionResults;
use crate::stream_events::StreamEvents;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`LoadResult::schema`].
pub const LOAD_SCHEMA: &str = "meshmeter.load/1";

/// One run of the generator. All figures except [`WarmupCounts`] only cover the measured window, after the
/// warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Always [`LOAD_SCHEMA`].
    pub schema: String,
    /// Version of Meshmeter that measured.
    pub version: String,
    /// Build of Meshmeter that measured; absent in merged results of different builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// The targets, with their schemes and without credentials.
    pub urls: Vec<String>,
    /// Start of the measured window, RFC 3339.
    pub started_at: String,
    /// With an agreed start time: delay until the last thread began to follow the schedule (warm-up
    /// included), microseconds. Absent otherwise, and in merged results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_delay_us: Option<f64>,
    /// Length of the measured window in seconds: as planned, or until the run was interrupted.
    pub duration_s: f64,
    /// The run was cut short: `duration_s` is less than planned, and no objective is met.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Worker threads.
    pub threads: usize,
    /// Connections kept open; if each request opened its own, the number of connections that there were at a time.
    pub connections: usize,
    /// Protocol of the connections.
    pub protocol: SpokenProtocol,
    /// Maximum number of concurrent requests per connection, if the peer allows that many.
    pub streams: usize,
    /// Settings of the connections, if they were not opened in the usual way; absent also in merged results of loads that opened
    /// them in different ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_settings: Option<ConnectionSettings>,
    /// Connections that the server closed for being idle, probably, and requests lost by it; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_closes: Option<IdleCloses>,
    /// Connections opened over the whole run by address, such as `10.1.0.7:80`, to servers whose name has several; empty
    /// otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, u64>,
    /// Number of TLS sessions over the whole run, by version and cipher, such as `TLSv1_3
    /// TLS13_AES_256_GCM_SHA384`; resumed sessions are under `… resumed`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tls_sessions: BTreeMap<String, u64>,
    /// Number of TLS sessions by the key of the server's certificate, such as `ECDSA P-256` or `RSA 2048`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tls_server_keys: BTreeMap<String, u64>,
    /// Closed loop: number of clients, the highest if it changes; absent in open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
    /// Closed loop: numbers of clients over the window, of all generators that share the load; empty if they do not change, and in
    /// merged results of loads with different ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_stages: Vec<ClientStage>,
    /// Open loop: arrivals, unless they come at even intervals; absent also in merged results of loads with different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Expected statuses: any other is an error. Absent if not given, which means those below 400, and in merged results of loads
    /// that expected different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_status: Option<ExpectedStatuses>,
    /// Rates over the window, per second.
    pub rate: Rates,
    /// Counts over the window.
    pub requests: RequestCounts,
    /// Counts before the window.
    pub warmup: WarmupCounts,
    /// From the intended start of each request to the end of its response.
    pub response_time_us: HistogramSummary,
    /// Lower bound of the lowest percentile among requests without a response, microseconds: the timeout, or less if
    /// requests failed or were abandoned earlier; never below the slowest response. Absent if every request has a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_above_us: Option<f64>,
    /// Waits of requests without a response until they failed or the run ended: by similar waits the shortest,
    /// microseconds, and how many. Empty without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered_waits_us: Vec<(f64, u64)>,
    /// Streams of events (`text/event-stream`): from the intended start of each request to the first byte of its response.
    /// Requests without a first byte rank above all others. Absent if no response was such a stream, as are the next three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_us: Option<HistogramSummary>,
    /// From the intended start to the first event with content. Requests that failed before it rank above all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_event_us: Option<HistogramSummary>,
    /// From one event with content to the next of the same response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_gap_us: Option<HistogramSummary>,
    /// Events with content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<StreamEvents>,
    /// From the actual send to the end of the response.
    pub service_time_us: HistogramSummary,
    /// From the intended start to the actual send, whatever the cause.
    pub schedule_lag_us: HistogramSummary,
    /// Generator lag: the part of the schedule lag caused by the generator itself, from when the request was
    /// due and a connection was free until the actual send. In a backlog caused by a generator stall, at most
    /// the duration of the stall.
    pub generator_lag_us: HistogramSummary,
    /// From when the kernel received a response until the generator read it. If
    /// `generator.pacing.answers_timed_by_kernel` is set, no other time includes it, except of bodies that end with their
    /// connection; the rate of a closed loop does. Absent if the kernel does not timestamp received data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading_lag_us: Option<HistogramSummary>,
    /// Maximum time by which responses may have come earlier than measured: the kernel has one time for all of a read, that of its
    /// last packet. 0 for a response at the end of a read. Absent without receive timestamps, and for protocols with one response
    /// at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_uncertainty_us: Option<HistogramSummary>,
    /// Number of separate events at and beyond `p99`, `p99.9` and `p99.99` of the response times: consecutive
    /// or overlapping slow requests count as one event. Entries are missing if more requests are slow than
    /// results can hold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub episodes: BTreeMap<String, u64>,
    /// Slowest requests, so that episodes of several generators can be merged; absent if it kept none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<SlowRequests>,
    /// Backlog throughout the window of an open loop. Absent in a closed loop, and if the run was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<Backlog>,
    /// TCP connection setup time, over the whole run. If requests wait for the connection, as clients of a closed loop do for the
    /// next one, `response_time_us` and `schedule_lag_us` include it.
    pub connect_time_us: HistogramSummary,
    /// TLS handshake time, from the open TCP connection until the session can carry requests, over the whole
    /// run; in other times as `connect_time_us` is. Full handshakes unless sessions are resumed. Empty if there were
    /// none.
    pub handshake_time_us: HistogramSummary,
    /// gRPC: messages of the calls; absent for other protocols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<GrpcMessages>,
    /// Bytes of the measured requests and responses, headers included.
    pub bytes: Bytes,
    /// Sizes of the measured responses, headers included, bytes.
    pub response_size_bytes: SizeSummary,
    /// Resources used by the generator itself.
    pub generator: GeneratorUsage,
    /// One point per second of the window, by time of completion, and of the time after it in which responses came.
    pub series: Vec<SeriesPoint>,
    /// Response times in each second of `series`, in the same order, encoded as
    /// [`HistogramSummary::histogram`]. Empty unless requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series_histograms: Vec<String>,
    /// Each URL apart, in the order given (`--per-url`); empty unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_url: Vec<UrlResult>,
    /// Each kind of request of a traffic file, in its order, or method of a recording; empty without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindResult>,
    /// Sessions, if a traffic file has any: then `rate.offered` is of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionResults>,
    /// Whether these figures may be used.
    pub verdict: Verdict,
    /// Result of the objective, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<ObjectiveResult>,
    /// Outcome of the export of figures to other systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<ExportRecord>,
    /// Results that were merged into this one, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergedResults>,
}

/// Requests of one URL among several, or of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UrlResult {
    /// The URL as given, with its weight and ranges.
    pub url: String,
    /// Requests sent, of those due in the window.
    pub sent: u64,
    /// Requests that were due and never sent. They rank above all responses.
    pub unsent: u64,
    /// Requests that were answered.
    pub completed: u64,
    /// Requests that failed. They rank above all responses.
    pub failed: u64,
    /// Response times.
    pub response_time_us: HistogramSummary,
    /// As [`LoadResult::censored_above_us`], of its requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_above_us: Option<f64>,
    /// As [`LoadResult::unanswered_waits_us`], of its requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered_waits_us: Vec<(f64, u64)>,
    /// Responses by status code, those that failed a check included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status: BTreeMap<String, u64>,
    /// Failed requests by kind of error.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}

/// Requests of one kind of a traffic file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindResult {
    /// Name of the kind.
    pub name: String,
    /// Weight, of which its share is.
    pub weight: u32,
    /// Its requests; the URL has the templates of the path.
    #[serde(flatten)]
    pub requests: UrlResult,
}

/// Slowest requests of a window, at most one fiftieth of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowRequests {
    /// All requests slower than this are included, microseconds; absent if not even all requests without a
    /// response are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_than_us: Option<f64>,
    /// Base64 of variable-length integers (LEB128: seven bits per byte, lowest first). Four integers per
    /// request, sorted by due time:
    /// - twice the worker's number, plus one if there was no response;
    /// - microseconds since the previous due time, for the first request since the start of the window;
    /// - nanoseconds until the response, or until the request was abandoned;
    /// - step from the worker's previous request, in order of completion (zigzag).
    pub requests: String,
}

/// Sum of the results of several generators: counts and rates are summed, histograms merged. `started_at` is
/// the earliest start, and `duration_s` extends from there to the latest end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MergedResults {
    /// Time during which all of them measured concurrently, seconds.
    pub overlap_s: f64,
    /// Parts, ordered by start time.
    pub parts: Vec<MergedPart>,
}

/// One of the merged results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MergedPart {
    /// Source: name of the file, or of the generator.
    pub name: String,
    /// Delay of the start of its measurement relative to the first part, microseconds. Includes threads that
    /// woke late for an agreed start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_offset_us: Option<f64>,
    /// Requests sent in its window.
    pub requests: u64,
    /// 99th percentile of its response time, microseconds; null if it falls among requests without a
    /// response.
    pub p99_us: Option<f64>,
    /// CPU used in its window, cores.
    pub cpu_cores: f64,
    /// Full result. Absent for one of several generators of a driver, which are only summarized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<LoadResult>>,
}

/// Protocol of connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub enum SpokenProtocol {
    /// HTTP/1.1 with keep-alive.
    #[default]
    #[serde(rename = "http/1.1")]
    Http1,
    /// HTTP/2.
    #[serde(rename = "http/2")]
    Http2,
    /// gRPC over HTTP/2.
    #[serde(rename = "grpc")]
    Grpc,
    /// Raw bytes without a protocol.
    #[serde(rename = "raw")]
    Raw,
    /// Messages of WebSocket over HTTP/1.1.
    #[serde(rename = "websocket")]
    WebSocket,
}

impl SpokenProtocol {
    /// Display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Grpc => "gRPC",
            Self::Raw => "raw",
            Self::WebSocket => "WebSocket",
        }
    }
}

/// Rates over the measured window, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Requested rate; absent in closed loop. With [`LoadResult::sessions`] it is of sessions, the others are of requests.
    pub offered: Option<f64>,
    /// Requests of the window written to a connection before its end.
    pub sent: f64,
    /// Throughput: responses received completely before the end of the window, those to requests from before it
    /// included. A backlog that is answered after the window does not count.
    pub completed: f64,
}

impl Rates {
    /// With less than this fraction of it completed, an offered rate was not achieved.
    pub const ACHIEVED_FRACTION: f64 = 0.99;
}

/// Counts of requests whose intended start lies in the window.
///
/// `scheduled = sent + unsent` and `sent = completed + failed`: every sent request either completes or fails.
/// Responses received within the window, which are [`Rates::completed`]: `completed - completed_after_window`, and
/// [`WarmupCounts::completed_in_window`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Slots of the schedule in the window.
    pub scheduled: u64,
    /// Requests written to a connection.
    pub sent: u64,
    /// Of `sent`, those sent after the end of the window: a small backlog is still sent, so that its waiting
    /// time is measured.
    pub late: u64,
    /// Due in the window and never sent: the target or the generator did not keep up.
    pub unsent: u64,
    /// Responses received completely, with any status.
    pub completed: u64,
    /// Of `completed`, responses received after the end of the window: they are latency alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub completed_after_window: u64,
    /// Requests sent but not answered completely.
    pub failed: u64,
    /// Failures by kind, of these requests, and of connection attempts since the opening of the window. Of a run that never
    /// started, all failures.
    pub errors: BTreeMap<String, u64>,
    /// Responses by status code, those that failed a check included.
    pub status: BTreeMap<String, u64>,
    /// Of `status`, those that the load did not expect. Absent if it was not told which to expect: statuses of 400 and above are
    /// errors then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexpected_status: Option<BTreeMap<String, u64>>,
    /// gRPC: calls by status name, such as `OK`; empty for other protocols.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grpc_status: BTreeMap<String, u64>,
}

/// Maximum of a count: JSON keeps greater ones inexactly, and sums of them overflow.
pub const MAX_COUNT: u64 = 1 << 53;

/// False beyond what any rate or usage can be: their sums and squares overflow.
pub(crate) fn is_possible(per_second: f64) -> bool {
    per_second.abs() <= MAX_COUNT as f64
}

impl LoadResult {
    /// False if a load cannot have counted so much: the result is damaged.
    #[must_use]
    pub fn has_possible_counts(&self) -> bool {
        let RequestCounts { scheduled, sent, late, unsent, completed, failed, .. } = self.requests;
        let RequestCounts { errors, status, unexpected_status, grpc_status, .. } = &self.requests;
        let by_kind = [errors, status, grpc_status, &self.warmup.errors].into_iter().chain(unexpected_status);
        let by_kind = by_kind.flat_map(BTreeMap::values).copied();
        let times = [
            &self.response_time_us,
            &self.service_time_us,
            &self.schedule_lag_us,
            &self.generator_lag_us,
            &self.connect_time_us,
            &self.handshake_time_us,
        ];
        let of_streams =
            [&self.first_byte_us, &self.first_event_us, &self.event_gap_us].into_iter().flatten();
        let of_times = times.into_iter().chain(of_streams).flat_map(|times| [times.count, times.censored]);
        let of_requests = [scheduled, sent, late, unsent, completed, failed];
        let Rates { offered, sent: sent_per_s, completed: completed_per_s } = self.rate;
        let windows_per_s = Some(self.duration_s.abs()).filter(|window_s| *window_s > 0.0).map(f64::recip);
        let mut per_second = offered.into_iter().chain(windows_per_s).chain([sent_per_s, completed_per_s]);
        of_requests.into_iter().chain(by_kind).chain(of_times).all(|count| count <= MAX_COUNT)
            && per_second.all(is_possible)
    }

    /// Failures of a kind over the whole run, those before the window included.
    #[must_use]
    pub fn errors_of_run(&self, kind: &str) -> u64 {
        let of = |errors: &BTreeMap<String, u64>| errors.get(kind).copied().unwrap_or(0);
        of(&self.warmup.errors).saturating_add(of(&self.requests.errors))
    }
}

impl RequestCounts {
    /// Responses with a status that was not expected (without an expectation: 400 or above), or with a gRPC
    /// status other than `OK` (whose HTTP status is 200).
    #[must_use]
    pub fn error_statuses(&self) -> u64 {
        self.error_statuses_by_name().map(|(_, count)| count).sum()
    }

    /// Error responses by display name of the status: `status 403`, `unexpected status 302`, `gRPC status
    /// UNAVAILABLE`.
    pub fn error_statuses_by_name(&self) -> impl Iterator<Item = (String, u64)> {
        let kind = if self.unexpected_status.is_some() { "unexpected status" } else { "status" };
        let of_http =
            self.error_statuses_by_code().map(move |(code, count)| (format!("{kind} {code}"), count));
        let of_grpc = self.grpc_status.iter().filter(|(name, _)| *name != GRPC_STATUS_NAMES[0]);
        of_http.chain(of_grpc.map(|(name, count)| (format!("gRPC status {name}"), *count)))
    }

    /// Responses with a status that is an error, by status code.
    pub fn error_statuses_by_code(&self) -> impl Iterator<Item = (&str, u64)> {
        let told = self.unexpected_status.is_some();
        let statuses = self.unexpected_status.as_ref().unwrap_or(&self.status).iter();
        let errors = statuses.filter(move |(code, _)| told || code.parse().is_ok_and(is_error_by_default));
        errors.map(|(code, count)| (code.as_str(), *count))
    }

    /// Judges the statuses of the responses by those that were expected.
    pub fn expect(&mut self, expected: &ExpectedStatuses) {
        let unexpected = |code: &String| !code.parse().is_ok_and(|code| expected.contains(code));
        let statuses = self.status.iter().filter(|(code, _)| unexpected(code));
        self.unexpected_status = Some(statuses.map(|(code, count)| (code.clone(), *count)).collect());
    }

    /// Fraction of sent requests that failed or got an error status, 0 to 1: see [`Self::error_statuses`].
    #[must_use]
    pub fn error_fraction(&self) -> f64 {
        if self.sent == 0 {
            return if self.errors.is_empty() { 0.0 } else { 1.0 };
        }
        (self.failed + self.error_statuses()) as f64 / self.sent as f64
    }
}

/// Requests whose intended start lies before the window. They load the system but are not in any histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmupCounts {
    /// Requests written to a connection.
    pub sent: u64,
    /// Responses received completely.
    pub completed: u64,
    /// Of `completed`, responses received within the window: part of its throughput.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub completed_in_window: u64,
    /// Requests sent but not answered completely.
    pub failed: u64,
    /// Failures by kind, of these requests, and of connection attempts before the window.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}

/// Bytes on the connections at the application level (without TCP and TLS overhead).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    /// Bytes written.
    pub sent: u64,
    /// Bytes read.
    pub received: u64,
}

/// Pacing: how the generator's threads wait until a request is due.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pacing {
    /// Sleep, and send requests that are due within some tens of microseconds together: least CPU.
    Economical,
    /// Spin all the time: least lag. Each thread needs its own CPU.
    Precise,
    /// Sleep, then spin until the request is due: without bound if the machine has a spare CPU, otherwise for
    /// a small share of the time.
    #[default]
    Auto,
}

impl Pacing {
    /// Name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Economical => "economical",
            Self::Precise => "precise",
            Self::Auto => "auto",
        }
    }
}

/// Pacing in the measured window and its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacingUsage {
    /// Requested pacing.
    pub asked: Pacing,
    /// Lag tolerance of [`Pacing::Economical`], microseconds; absent for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_tolerance_us: Option<f64>,
    /// Share of the threads' time spent spinning, 0 to 1.
    pub spinning_fraction: f64,
    /// Share of the time in which [`Pacing::Auto`] found a spare CPU and did not bound the spinning, 0 to 1.
    pub unbounded_fraction: f64,
    /// Share of time that the busiest thread was on a CPU without spinning, 0 to 1: near 1, it could not send
    /// more.
    pub busiest_working_fraction: f64,
    /// CPU per timer wake-up, microseconds, measured by sampling; an initial guess if there were too few
    /// samples.
    pub sleep_cpu_us: f64,
    /// True if response times end when the kernel received the last bytes, not when a thread read them.
    #[serde(default)]
    pub answers_timed_by_kernel: bool,
}

/// Resources used by the generator process in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorUsage {
    /// User-mode CPU, seconds.
    pub cpu_user_s: f64,
    /// Kernel-mode CPU, seconds.
    pub cpu_system_s: f64,
    /// User and kernel CPU per request sent, microseconds.
    pub cpu_us_per_request: f64,
    /// Share of time that the busiest worker thread was on a CPU, 0 to 1, including spinning for a due
    /// request.
    pub busiest_thread_fraction: f64,
    /// Voluntary context switches of its worker threads.
    pub voluntary_switches: u64,
    /// Involuntary context switches of its worker threads.
    pub involuntary_switches: u64,
    /// Peak resident memory of the process, bytes.
    pub memory_peak_bytes: u64,
    /// Kernel I/O interface of its connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<GeneratorNetwork>,
    /// Pacing of its threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<PacingUsage>,
    /// Gaps observed by its threads while spinning; absent if none was spinning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<SpinPauses>,
}

impl GeneratorUsage {
    /// Share of time that the busiest thread was on a CPU without spinning, 0 to 1. Without pacing, as
    /// in merged results, threads did not spin.
    #[must_use]
    pub fn busiest_working_fraction(&self) -> f64 {
        self.pacing.map_or(self.busiest_thread_fraction, |pacing| pacing.busiest_working_fraction)
    }
}

/// Gaps of over 100 µs observed by spinning threads: their CPU was taken away, for example by the hypervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpinPauses {
    /// Number of gaps, over all threads.
    pub count: u64,
    /// Longest gap.
    pub longest_us: f64,
    /// Sum of all gaps.
    pub total_us: f64,
    /// Total spinning time of all threads.
    pub spun_s: f64,
}

/// Kernel I/O interface of the generator's connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeneratorNetwork {
    /// io_uring: completions, submitted and awaited in batches.
    IoUring,
    /// epoll: readiness.
    Epoll,
}

impl GeneratorNetwork {
    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Epoll => "epoll",
        }
    }
}

/// One second of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Start of the second, from the start of the window.
    pub t_s: f64,
    /// Requests of the window sent in this second.
    pub sent: u64,
    /// Responses received completely in this second, to requests of the window: over all seconds,
    /// [`RequestCounts::completed`].
    pub completed: u64,
    /// Requests that failed in this second.
    pub failed: u64,
    /// Median response time; 0 if no request ended. Like the others, null if it falls among failed requests.
    pub p50_us: Option<f64>,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9_us")]
    pub p99_9_us: Option<f64>,
    /// Maximum response time.
    pub max_us: Option<f64>,
}

impl SeriesPoint {
    /// Length of the part inside a window, in seconds. Seconds after the window, which hold late responses, are whole.
    #[must_use]
    pub fn length_s(&self, window_s: f64) -> f64 {
        let in_window_s = window_s - self.t_s;
        if in_window_s > 0.0 { in_window_s.min(1.0) } else { 1.0 }
    }
}

impl Default for SeriesPoint {
    fn default() -> Self {
        let zero = Some(0.0);
        Self {
            t_s: 0.0,
            sent: 0,
            completed: 0,
            failed: 0,
            p50_us: zero,
            p90_us: zero,
            p99_us: zero,
            p99_9_us: zero,
            max_us: zero,
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
