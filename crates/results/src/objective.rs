//! Result of an objective.

use serde::{Deserialize, Serialize};

/// An objective, and whether a result met it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveResult {
    /// True if every bound holds and the target kept up with the offered rate: percentiles of a saturated run
    /// are lower bounds.
    pub met: bool,
    /// Result of each bound.
    pub bounds: Vec<BoundResult>,
    /// Notes for the reader, such as a percentile that rests on few requests.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A bound and the measured value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundResult {
    /// Figure: `p99`, `mean`, `max`, `first-event-p99`, `event-gap-p99`, `errors`, `rate`, `achieved` …
    pub figure: String,
    /// Unit of `limit` and `measured`: `us` (microseconds), `fraction` (0 to 1) or `per_second`.
    pub unit: String,
    /// Maximum allowed value; for `rate` and `achieved`, the minimum.
    pub limit: f64,
    /// Measured value; null for a time that falls among requests without a response, which violates every
    /// bound.
    pub measured: Option<f64>,
    /// True if the bound holds.
    pub holds: bool,
}
