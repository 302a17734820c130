//! Distributions: their usual figures, and the whole of them.

use serde::{Deserialize, Serialize};

/// How large things were, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeSummary {
    /// How many. All other figures are 0 where this is 0.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// The greatest.
    pub max: u64,
}

/// A distribution: its usual figures, and the whole of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistogramSummary {
    /// Values recorded. All other figures are 0 where this is 0.
    pub count: u64,
    /// Least value.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Greatest value.
    pub max: f64,
    /// Median.
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: f64,
    /// 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p99_99: f64,
    /// The HdrHistogram, V2 compressed encoding, base64.
    pub histogram: String,
}
