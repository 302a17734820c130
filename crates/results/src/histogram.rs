//! Distributions: summary figures and full histogram.

use crate::figure::Figure;
use serde::{Deserialize, Serialize};

/// Distribution of sizes in bytes, or of counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeSummary {
    /// Number of values. All other figures are 0 if this is 0.
    pub count: u64,
    /// Minimum.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Maximum.
    pub max: u64,
}

/// A distribution: summary figures and full histogram.
///
/// Requests without a response rank above all values. A figure that falls among them is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistogramSummary {
    /// Values recorded. All figures are 0 if this and `censored` are 0.
    pub count: u64,
    /// Requests without a response: failed, timed out or never sent. They rank above all values and are not
    /// in the histogram.
    pub censored: u64,
    /// Minimum value.
    pub min: f64,
    /// Arithmetic mean; null if any request has no response.
    pub mean: Option<f64>,
    /// Standard deviation; null if any request has no response.
    pub stddev: Option<f64>,
    /// Maximum value; null if any request has no response.
    pub max: Option<f64>,
    /// Median; null, like all percentiles, if it falls among requests without a response.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<f64>,
    /// 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<f64>,
    /// HdrHistogram of the values, V2 compressed encoding, base64.
    pub histogram: String,
}

impl Default for HistogramSummary {
    fn default() -> Self {
        let none = Some(0.0);
        Self {
            count: 0,
            censored: 0,
            min: 0.0,
            mean: none,
            stddev: none,
            max: none,
            p50: none,
            p75: none,
            p90: none,
            p95: none,
            p99: none,
            p99_9: none,
            p99_99: none,
            histogram: String::new(),
        }
    }
}

impl HistogramSummary {
    /// Number of values and of requests without a response.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.count.saturating_add(self.censored)
    }

    /// A figure of the distribution; null if it falls among requests without a response or is not a time.
    #[must_use]
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        let Self { mean, p50, p75, p90, p95, p99, p99_9, p99_99, max, .. } = self;
        figure.of_times([mean, p50, p75, p90, p95, p99, p99_9, p99_99, max]).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use crate::HistogramSummary;

    #[test]
    fn figure_among_requests_without_response_is_null() {
        let times = HistogramSummary { count: 90, censored: 10, p99: None, ..HistogramSummary::default() };
        let text = serde_json::to_value(&times).unwrap();
        assert!(text["p99"].is_null() && text["censored"] == 10);
        assert_eq!(serde_json::from_value::<HistogramSummary>(text).unwrap(), times);
    }
}
