//! Edges: calls from one workload to another, counted by the caller.

use crate::disturbed::DisturbedFigures;
use crate::estimate::{Estimate, Percentiles};
use crate::histogram::HistogramSummary;
use serde::{Deserialize, Serialize};

/// Calls over one edge in one trial, warm-up included, summed over the calling pods. Each attempt counts as a
/// request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeRecord {
    /// Qualified name of the calling workload.
    pub from: String,
    /// Qualified name of the called workload.
    pub to: String,
    /// Requests sent, retries included.
    pub requests: u64,
    /// Requests answered without an error.
    pub answered: u64,
    /// Requests that failed, timed out or were answered with an error.
    pub failed: u64,
    /// Requests that repeated a failed one.
    pub retries: u64,
    /// Connections opened.
    pub connections: u64,
    /// Time from sending a request to the end of its response, including error responses, of the requests that ended
    /// after the opening of the measured window. Requests without a response rank above all. Absent if the caller does not
    /// measure it, or could not be read at the opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_us: Option<HistogramSummary>,
}

/// Calls over one edge, summarized over the trials of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeSummary {
    /// Qualified name of the calling workload.
    pub from: String,
    /// Qualified name of the called workload.
    pub to: String,
    /// Requests per second in the measured window, scaled from the count of the whole trial like those of
    /// services.
    pub requests_per_s: Option<Estimate>,
    /// Response time seen by the caller, without the warm-up.
    pub response_time_us: Option<Percentiles>,
    /// Fraction of requests that failed, over all trials, 0 to 1.
    pub errors: f64,
    /// True if every valid trial proved the path of this edge.
    pub proven: bool,
    /// Figures of trials that noise of the machine disturbed, in no estimate:
    /// `requests_per_s`, `response_time_p50_us`, `…_p90_us`, `…_p99_us`.
    #[serde(default, skip_serializing_if = "DisturbedFigures::is_empty")]
    pub disturbed: DisturbedFigures,
}
