//! `meshmeter.load/1`: what one run of the load generator measured.

use super::export::ExportRecord;
use super::grpc::{GRPC_STATUS_NAMES, GrpcMessages};
use super::histogram::{HistogramSummary, SizeSummary};
use super::objective::ObjectiveResult;
use super::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`LoadResult::schema`].
pub const LOAD_SCHEMA: &str = "meshmeter.load/1";

/// One run of the generator. All figures but [`WarmupCounts`] cover the measured window alone: after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Always [`LOAD_SCHEMA`].
    pub schema: String,
    /// The version of Meshmeter that measured; empty in results of before it was told.
    #[serde(default)]
    pub version: String,
    /// The targets, as given.
    pub urls: Vec<String>,
    /// Start of the measured window, RFC 3339.
    pub started_at: String,
    /// Where a start was agreed on: by how much later the last thread began to follow the schedule, warm-up included,
    /// microseconds. Absent otherwise, and in merged results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_delay_us: Option<f64>,
    /// Length of the measured window in seconds: as planned, or until the run was interrupted.
    pub duration_s: f64,
    /// Worker threads.
    pub threads: usize,
    /// Connections kept open.
    pub connections: usize,
    /// What was spoken on them.
    #[serde(default)]
    pub protocol: SpokenProtocol,
    /// The most requests that could be unanswered at once on a connection, where its peer took so many.
    #[serde(default = "one")]
    pub streams: usize,
    /// How many sessions of TLS were made over the whole run, by version and cipher, such as
    /// `TLSv1_3 TLS13_AES_256_GCM_SHA384`; those that resumed an earlier one under `… resumed`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tls_sessions: BTreeMap<String, u64>,
    /// The same sessions by the key of the server's certificate, such as `ECDSA P-256` or `RSA 2048`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tls_server_keys: BTreeMap<String, u64>,
    /// Closed loop: how many clients; absent in open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
    /// Rates over the window, per second.
    pub rate: Rates,
    /// Counts over the window.
    pub requests: RequestCounts,
    /// What happened before the window.
    pub warmup: WarmupCounts,
    /// From the intended start of each request to the end of its response.
    pub response_time_us: HistogramSummary,
    /// Response times of requests without a response are greater than this, as far as is known: the timeout, or less where
    /// a request failed or was given up before. Absent if every request has a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_above_us: Option<f64>,
    /// From the actual send to the end of the response.
    pub service_time_us: HistogramSummary,
    /// From the intended start to the actual send, whatever the cause.
    pub schedule_lag_us: HistogramSummary,
    /// The part of the schedule lag that the generator itself caused: from the moment when the request was due and a
    /// connection was free to the actual send; in a backlog that began with the generator's absence, as much of the lag as it was away.
    pub generator_lag_us: HistogramSummary,
    /// From when the kernel had a response to when the generator read it. Where `generator.pacing.answers_timed_by_kernel` says
    /// so, it is in no other figure. Absent where the kernel does not note when responses come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading_lag_us: Option<HistogramSummary>,
    /// Separate events at `p99`, `p99.9` and `p99.99` of the response times and beyond: slow requests that follow or overlap each other
    /// are one. Without those that are not known: where more requests are slow than results carry, and in results of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub episodes: BTreeMap<String, u64>,
    /// The slowest requests, so that episodes of several generators can be counted together; absent in results of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<SlowRequests>,
    /// Opening of connections (TCP alone), over the whole run.
    pub connect_time_us: HistogramSummary,
    /// TLS handshakes, full ones unless sessions are resumed, from the open TCP connection to the session that may carry requests, over the
    /// whole run. Empty where there was none, and in results of before there was TLS.
    #[serde(default)]
    pub handshake_time_us: HistogramSummary,
    /// gRPC: messages of the calls. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<GrpcMessages>,
    /// Bytes of the measured requests and responses, heads included.
    pub bytes: Bytes,
    /// Sizes of the measured responses, heads included, bytes.
    #[serde(default)]
    pub response_size_bytes: SizeSummary,
    /// What the generator itself used.
    pub generator: GeneratorUsage,
    /// One point a second of the window, by time of completion.
    pub series: Vec<SeriesPoint>,
    /// Response times of each second of `series`, in its order, each as [`HistogramSummary::histogram`]. Empty unless they
    /// were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series_histograms: Vec<String>,
    /// Each URL apart, in the order given (`--per-url`); empty unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_url: Vec<UrlResult>,
    /// Whether these figures may be used.
    pub verdict: Verdict,
    /// How they stand to an objective, where one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<ObjectiveResult>,
    /// What became of the figures that were sent to other systems meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<ExportRecord>,
    /// The results of which this one is the sum, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<MergedResults>,
}

/// Requests of one URL among several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UrlResult {
    /// The URL as given, with its weight and ranges.
    pub url: String,
    /// Requests sent, of those due in the window. Requests that were never sent belong to no URL.
    pub sent: u64,
    /// Requests that were answered.
    pub completed: u64,
    /// Requests that failed. They rank above all responses.
    pub failed: u64,
    /// Response times.
    pub response_time_us: HistogramSummary,
}

/// The slowest requests of a window, the slowest fiftieth at most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowRequests {
    /// Every request slower than this is among them, microseconds; absent where not even all requests without a response are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_than_us: Option<f64>,
    /// Base64 of variable-length integers, seven bits per byte, the lowest first; four per request, by due time: twice the
    /// worker's number, plus one without a response; microseconds from the due time before, the first from the start of the
    /// window; nanoseconds until the response, or until the request was given up; the step from the worker's request before, in
    /// order of completion (zigzag).
    pub requests: String,
}

/// What several generators measured, added up: counts and rates are sums, histograms are merged, `started_at` is the
/// earliest start and `duration_s` reaches from there to the latest end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MergedResults {
    /// For how long all of them measured at once, seconds.
    pub overlap_s: f64,
    /// Each of them, the earliest first.
    pub parts: Vec<MergedPart>,
}

/// One of the results that were added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MergedPart {
    /// Where it came from: the name of its file, or of the generator.
    pub name: String,
    /// By how much later than the first one it began to measure, microseconds. A thread that woke late for an agreed start is
    /// in it. Absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_offset_us: Option<f64>,
    /// Requests that it sent in its window.
    #[serde(default)]
    pub requests: u64,
    /// Its 99th percentile of the response time, microseconds; null among requests without a response.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// CPU that it used in its window, cores.
    #[serde(default)]
    pub cpu_cores: f64,
    /// It, whole. Absent where it was one of several generators of a driver: these are summarised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<LoadResult>>,
}

/// One at a time, as in results of before there were more.
fn one() -> usize {
    1
}

/// What is spoken on connections.
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
    /// Bytes without a protocol.
    #[serde(rename = "raw")]
    Raw,
}

impl SpokenProtocol {
    /// As people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Grpc => "gRPC",
            Self::Raw => "raw",
        }
    }
}

/// Rates over the measured window, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Asked for: absent in closed loop.
    pub offered: Option<f64>,
    /// Requests written to a connection.
    pub sent: f64,
    /// Responses received whole.
    pub completed: f64,
}

/// Counts of requests whose intended start lies in the window.
///
/// `scheduled = sent + unsent` and `sent = completed + failed`: a request that was sent ends as one or the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Slots of the schedule in the window.
    pub scheduled: u64,
    /// Written to a connection.
    pub sent: u64,
    /// Of those, sent after the end of the window: a small backlog is still sent, so that its waiting is measured.
    #[serde(default)]
    pub late: u64,
    /// Due in the window and never sent: the target or the generator did not keep up.
    pub unsent: u64,
    /// Answered whole, whatever the status.
    pub completed: u64,
    /// Sent and not answered whole.
    pub failed: u64,
    /// Failures by kind: of sent requests, and of connections that could not be opened.
    pub errors: BTreeMap<String, u64>,
    /// Responses by status code.
    pub status: BTreeMap<String, u64>,
    /// gRPC: calls by the name of their status, such as `OK`. Empty otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grpc_status: BTreeMap<String, u64>,
}

impl RequestCounts {
    /// Responses with status 400 or above, or with a gRPC status other than `OK`, which has the HTTP status 200.
    #[must_use]
    pub fn error_statuses(&self) -> u64 {
        self.error_statuses_by_name().map(|(_, count)| count).sum()
    }

    /// The same, each status with its count: `status 403`, `gRPC status UNAVAILABLE`.
    pub fn error_statuses_by_name(&self) -> impl Iterator<Item = (String, u64)> {
        let of_http =
            self.status.iter().filter(|(code, _)| code.parse::<u16>().is_ok_and(|code| code >= 400));
        let of_grpc = self.grpc_status.iter().filter(|(name, _)| *name != GRPC_STATUS_NAMES[0]);
        let of_http = of_http.map(|(code, count)| (format!("status {code}"), *count));
        of_http.chain(of_grpc.map(|(name, count)| (format!("gRPC status {name}"), *count)))
    }

    /// The fraction of sent requests, 0 to 1, that failed or were answered with an error: see [`Self::error_statuses`].
    #[must_use]
    pub fn error_fraction(&self) -> f64 {
        if self.sent == 0 {
            return if self.errors.is_empty() { 0.0 } else { 1.0 };
        }
        (self.failed + self.error_statuses()) as f64 / self.sent as f64
    }
}

/// Requests whose intended start lies before the window. They load the system and are in no histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmupCounts {
    /// Written to a connection.
    pub sent: u64,
    /// Answered whole.
    pub completed: u64,
    /// Sent and not answered whole.
    pub failed: u64,
}

/// Bytes on the connections, as the application sees them (no TCP or TLS overhead).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    /// Written.
    pub sent: u64,
    /// Read.
    pub received: u64,
}

/// How the generator's threads wait until a request is due.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pacing {
    /// They sleep, and let what is due within some tens of microseconds go out together: least CPU.
    Economical,
    /// They spin all the time: least lag. Each needs a CPU of its own.
    Precise,
    /// They sleep, and spin for the last stretch: without bound where the machine has a CPU to spare, for a small share of
    /// their time where it has not.
    #[default]
    Auto,
}

impl Pacing {
    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Economical => "economical",
            Self::Precise => "precise",
            Self::Auto => "auto",
        }
    }
}

/// How the threads waited in the measured window, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacingUsage {
    /// What was asked for.
    pub asked: Pacing,
    /// How late requests might usually be sent, with [`Pacing::Economical`], microseconds; absent with the others, and in
    /// results of before there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_tolerance_us: Option<f64>,
    /// The share of the threads' time that was spent spinning, 0 to 1.
    pub spinning_fraction: f64,
    /// The share of the time, 0 to 1, for which [`Pacing::Auto`] found a CPU to spare and did not bound the spinning.
    pub unbounded_fraction: f64,
    /// The share of its time that the busiest thread was on a CPU and did not spin, 0 to 1: near 1 it could not send more.
    pub busiest_working_fraction: f64,
    /// CPU of one sleep that a timer ends, microseconds, as measured by sampling; a first guess where there were too few.
    pub sleep_cpu_us: f64,
    /// Times of answers end when the kernel had their last bytes, not when a thread came to read them.
    #[serde(default)]
    pub answers_timed_by_kernel: bool,
}

/// What the generator's process used in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorUsage {
    /// CPU in user mode, seconds.
    pub cpu_user_s: f64,
    /// CPU in the kernel, seconds.
    pub cpu_system_s: f64,
    /// CPU of both modes for each request sent, microseconds.
    pub cpu_us_per_request: f64,
    /// The share of its time that the busiest worker thread was on a CPU, 0 to 1. Spinning for a due request counts.
    pub busiest_thread_fraction: f64,
    /// How often its worker threads waited for something.
    #[serde(default)]
    pub voluntary_switches: u64,
    /// How often its worker threads were made to give way.
    #[serde(default)]
    pub involuntary_switches: u64,
    /// Peak resident memory of the process, bytes.
    pub memory_peak_bytes: u64,
    /// What its connections stood on; absent in results of before there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<GeneratorNetwork>,
    /// How its threads waited; absent in results of before there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<PacingUsage>,
    /// Gaps that its threads saw while they spun; absent if none spun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<SpinPauses>,
}

impl GeneratorUsage {
    /// The share of its time, 0 to 1, that the busiest thread was on a CPU and did not spin; in results of before there was a choice
    /// of waiting, no thread spun.
    #[must_use]
    pub fn busiest_working_fraction(&self) -> f64 {
        self.pacing.map_or(self.busiest_thread_fraction, |pacing| pacing.busiest_working_fraction)
    }
}

/// Gaps of over 100 µs that spinning threads saw: something else had their CPU, such as the hypervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpinPauses {
    /// Gaps, of all threads.
    pub count: u64,
    /// The longest.
    pub longest_us: f64,
    /// All together.
    pub total_us: f64,
    /// How long the threads spun, all together.
    pub spun_s: f64,
}

/// The interface of the kernel's on which the generator's connections stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GeneratorNetwork {
    /// Completions, handed over and awaited together.
    IoUring,
    /// Readiness.
    Epoll,
}

impl GeneratorNetwork {
    /// Its name, as in results.
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
    /// Requests sent in this second.
    #[serde(default)]
    pub sent: u64,
    /// Responses received whole in this second.
    pub completed: u64,
    /// Requests that failed in this second.
    pub failed: u64,
    /// Median response time; 0 where nothing ended. Null, like the others, if it falls among the failed.
    pub p50_us: Option<f64>,
    /// 90th percentile.
    #[serde(default = "zero")]
    pub p90_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    #[serde(default = "zero", rename = "p99.9_us")]
    pub p99_9_us: Option<f64>,
    /// Greatest response time.
    #[serde(default = "zero")]
    pub max_us: Option<f64>,
}

impl Default for SeriesPoint {
    fn default() -> Self {
        Self {
            t_s: 0.0,
            sent: 0,
            completed: 0,
            failed: 0,
            p50_us: zero(),
            p90_us: zero(),
            p99_us: zero(),
            p99_9_us: zero(),
            max_us: zero(),
        }
    }
}

/// The figures of a second that results of earlier versions lack.
fn zero() -> Option<f64> {
    Some(0.0)
}
