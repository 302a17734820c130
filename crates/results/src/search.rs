//! `meshmeter.search/1`: highest rate that meets an objective, with every probe.

use crate::load::{LoadResult, SeriesPoint};
use crate::objective::BoundResult;
use serde::{Deserialize, Serialize};

/// The value of [`SearchResult::schema`].
pub const SEARCH_SCHEMA: &str = "meshmeter.search/1";

/// Search for the highest rate that meets an objective. Rates are requests per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// Always [`SEARCH_SCHEMA`].
    pub schema: String,
    /// The targets, as given.
    pub urls: Vec<String>,
    /// Start of the first probe, RFC 3339.
    pub started_at: String,
    /// Wall-clock time of the whole search, seconds.
    pub duration_s: f64,
    /// Objective, as typed: `p99=5ms,errors=0.1%`.
    pub objective: String,
    /// Requested precision of the rate, a fraction.
    pub precision: f64,
    /// Lowest rate considered.
    pub lowest_rate: f64,
    /// Highest rate considered.
    pub highest_rate: f64,
    /// Rate found; absent if no probe met the objective.
    pub found: Option<FoundRate>,
    /// All probes in order, with full results.
    pub probes: Vec<ProbeRecord>,
    /// Latency as a function of rate: every probed rate, ascending, with all its probes merged.
    pub curve: Vec<RatePoint>,
    /// How it ended.
    pub verdict: SearchVerdict,
}

/// Highest rate that met the objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundRate {
    /// The rate.
    pub rate: f64,
    /// True if the majority of confirmation runs at this rate met the objective.
    pub confirmed: bool,
    /// Confirmation runs that met the objective.
    pub confirmations_held: usize,
    /// Number of confirmation runs.
    pub confirmations: usize,
    /// Lower end of the bracket: the rate found.
    pub low: f64,
    /// Upper end of the bracket: the lowest higher rate at which a probe failed; absent if none was probed.
    pub high: Option<f64>,
    /// Lower end of the credible interval of the highest good rate, from all probes.
    pub likely_low: f64,
    /// Upper end of the credible interval.
    pub likely_high: f64,
}

/// Record of a probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeRecord {
    /// Offered rate; absent for the closed-loop capacity probe.
    pub rate: Option<f64>,
    /// Phase: `capacity`, `growth`, `bisection`, `confirmation` or `curve`.
    pub phase: String,
    /// Outcome: `held`, `failed` or `generator-limited`; absent for the capacity probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Why it failed, or a note for the reader.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Full result, with `objective`.
    pub result: LoadResult,
}

/// A rate and the measurements at it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Offered rate.
    pub rate: f64,
    /// Number of probes at this rate.
    pub probes: usize,
    /// Number of those that met the objective.
    pub held: usize,
    /// Completed requests per second, over all its probes.
    pub completed_rate: f64,
    /// Fraction of requests that failed, over all its probes.
    pub error_fraction: f64,
    /// True if some probe at this rate was saturated: percentiles are then lower bounds.
    pub saturated: bool,
    /// Mean response time. Mean and percentiles are over all merged probes; null if among requests without a
    /// response.
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
    /// Maximum.
    pub max_us: Option<f64>,
}

/// How a search ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchVerdict {
    /// Reason for the end: `found`, `not-held` (not even at the lowest rate), `unconfirmed`,
    /// `generator-limited` (not even the lowest rate could be offered) or `interrupted`.
    pub end: String,
    /// What limits the rate found: `target`, `generator` (the target may support more) or `range` (the
    /// highest rate held).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Answer as a sentence.
    pub text: String,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Events that `meshmeter load --search --progress json` writes while it runs, one JSON object per line on
/// standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SearchEvent {
    /// A probe has started.
    ProbeStarted {
        /// Number of the probe, counted from 1.
        probe: usize,
        /// See [`ProbeRecord::phase`].
        phase: String,
        /// Offered rate; absent for the capacity probe.
        rate: Option<f64>,
        /// Length of its window, seconds.
        duration_s: f64,
    },
    /// One second of the probe's window has passed.
    Second(SeriesPoint),
    /// A probe has ended.
    ProbeEnded {
        /// Number of the probe, counted from 1.
        probe: usize,
        /// See [`ProbeRecord::outcome`].
        outcome: Option<String>,
        /// Why it failed.
        reason: String,
        /// Result of each bound.
        bounds: Vec<BoundResult>,
        /// Completed requests per second.
        completed_rate: f64,
    },
}
