//! `meshmeter.search/1`: the highest rate that holds an objective, and every probe behind it.

use super::load::{LoadResult, SeriesPoint};
use super::objective::BoundResult;
use serde::{Deserialize, Serialize};

/// The value of [`SearchResult::schema`].
pub const SEARCH_SCHEMA: &str = "meshmeter.search/1";

/// A search for the highest rate that holds an objective. Rates are requests a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// Always [`SEARCH_SCHEMA`].
    pub schema: String,
    /// The targets, as given.
    pub urls: Vec<String>,
    /// Start of the first probe, RFC 3339.
    pub started_at: String,
    /// Wall time of the whole search.
    pub duration_s: f64,
    /// What was asked, as typed: `p99=5ms,errors=0.1%`.
    pub objective: String,
    /// How near to the truth the rate was to be found, a fraction.
    pub precision: f64,
    /// Least rate that could be the answer.
    pub lowest_rate: f64,
    /// Greatest rate that could be probed.
    pub highest_rate: f64,
    /// The rate found; absent where no probe held.
    pub found: Option<FoundRate>,
    /// Every probe in its order, whole.
    pub probes: Vec<ProbeRecord>,
    /// Latency against rate: every rate probed, the lowest first, all its probes together.
    pub curve: Vec<RatePoint>,
    /// How it ended.
    pub verdict: SearchVerdict,
}

/// The highest rate that held the objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundRate {
    /// The rate.
    pub rate: f64,
    /// Whether confirming runs at this rate held, more of them than not.
    pub confirmed: bool,
    /// Confirming runs that held …
    pub confirmations_held: usize,
    /// … of so many.
    pub confirmations: usize,
    /// The bracket: the rate found …
    pub low: f64,
    /// … and the least rate above it at which a probe did not hold; absent where none was probed.
    pub high: Option<f64>,
    /// Lower end of the interval in which the highest good rate is believed by all probes together.
    pub likely_low: f64,
    /// Its upper end.
    pub likely_high: f64,
}

/// A probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeRecord {
    /// Offered rate; absent for the closed loop that measures the capacity.
    pub rate: Option<f64>,
    /// `capacity`, `growth`, `bisection`, `confirmation` or `curve`.
    pub phase: String,
    /// `held`, `failed` or `generator-limited`; absent for the capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Why it did not hold, or what a reader should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The whole result, with `objective`.
    pub result: LoadResult,
}

/// A rate and what was measured at it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Offered.
    pub rate: f64,
    /// Probes at this rate.
    pub probes: usize,
    /// Of these, how many held.
    pub held: usize,
    /// Completed a second, over all its probes.
    pub completed_rate: f64,
    /// Fraction of requests that failed, over all its probes.
    pub error_fraction: f64,
    /// Some probe at this rate was saturated: percentiles are lower bounds.
    pub saturated: bool,
    /// Mean response time; percentiles below, all probes merged without loss. Null among requests without a response.
    pub mean_us: Option<f64>,
    /// Median.
    pub p50_us: Option<f64>,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9_us")]
    pub p99_9_us: Option<f64>,
    /// Greatest.
    pub max_us: Option<f64>,
}

/// How a search ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchVerdict {
    /// `found`, `not-held` (not even at the lowest rate), `unconfirmed`, `generator-limited` (not even the lowest rate could be
    /// offered) or `interrupted`.
    pub end: String,
    /// What bounds the rate found: `target`, `generator` (the target may carry more) or `range` (the highest rate held).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The answer in a sentence.
    pub text: String,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// What `meshmeter load --search --progress json` tells while it runs, one JSON object a line on standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SearchEvent {
    /// A probe begins.
    ProbeStarted {
        /// Counted from 1.
        probe: usize,
        /// As in [`ProbeRecord::phase`].
        phase: String,
        /// Offered rate; absent for the capacity.
        rate: Option<f64>,
        /// Its window.
        duration_s: f64,
    },
    /// A second of the probe's window is over.
    Second(SeriesPoint),
    /// The probe is over.
    ProbeEnded {
        /// Counted from 1.
        probe: usize,
        /// As in [`ProbeRecord::outcome`].
        outcome: Option<String>,
        /// Why it did not hold.
        reason: String,
        /// Each bound.
        bounds: Vec<BoundResult>,
        /// Completed a second.
        completed_rate: f64,
    },
}
