//! How a result stands to what was asked of it.

use serde::{Deserialize, Serialize};

/// An objective, and whether a result met it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveResult {
    /// Every bound holds and the target kept up with the offered rate: percentiles of a saturated run are lower bounds.
    pub met: bool,
    /// Each bound.
    pub bounds: Vec<BoundResult>,
    /// What a reader should know, such as a percentile that rests on few requests.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A bound, and what was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundResult {
    /// `p99`, `mean`, `max`, `errors`, `rate`, `achieved` …
    pub figure: String,
    /// What `limit` and `measured` count: `us` (microseconds), `fraction` (0 to 1) or `per_second`.
    pub unit: String,
    /// The greatest value that is good; the least one of `rate` and `achieved`.
    pub limit: f64,
    /// What was measured; null for a time that falls among requests without a response, which no bound allows.
    pub measured: Option<f64>,
    /// Whether the bound holds.
    pub holds: bool,
}
