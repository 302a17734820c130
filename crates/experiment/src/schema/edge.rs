//! Edges: calls from one workload to another, as the caller counted them.

use super::estimate::{Estimate, Percentiles};
use super::histogram::HistogramSummary;
use serde::{Deserialize, Serialize};

/// Calls over one edge in one trial, warm-up included, counted by the calling pods together. An attempt is a request of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeRecord {
    /// Qualified name of the calling workload.
    pub from: String,
    /// Qualified name of the called workload.
    pub to: String,
    /// Requests sent, retries included.
    pub requests: u64,
    /// Of which answered without an error.
    pub answered: u64,
    /// Of which failed, timed out or were answered with an error.
    pub failed: u64,
    /// Of `requests`, those that repeated a failed one.
    pub retries: u64,
    /// Connections opened.
    pub connections: u64,
    /// Time from sending a request to the end of its response, an error's included; requests without a response rank above all.
    /// Absent where the caller does not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_us: Option<HistogramSummary>,
}

/// Calls over one edge, over the trials of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeSummary {
    /// Qualified name of the calling workload.
    pub from: String,
    /// Qualified name of the called workload.
    pub to: String,
    /// Requests per second in the measured window, made from the count of the whole trial as those of services are.
    pub requests_per_s: Option<Estimate>,
    /// Response time that the caller saw over the whole trial.
    pub response_time_us: Option<Percentiles>,
    /// Fraction of requests that failed, over all trials, 0 to 1.
    pub errors: f64,
    /// Every valid trial proved the path of this edge.
    pub proven: bool,
}
