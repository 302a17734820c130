//! Distribution of a cell's requests by two clocks: corrected for coordinated omission, and uncorrected.

use serde::{Deserialize, Serialize};

/// All requests of an open-loop cell, with the histograms of its trials merged. Requests without a response
/// rank above all others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestDistribution {
    /// Number of trials: the valid ones, and for a saturated cell the saturated ones too.
    pub trials: usize,
    /// True if the cell is saturated: its response times grow for as long as the load lasts.
    pub saturated: bool,
    /// Requests due in the windows.
    pub due: u64,
    /// Requests that got a response.
    pub answered: u64,
    /// Lower bound of the response times of requests without a response, microseconds; absent if every
    /// request has one, and in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_above_us: Option<f64>,
    /// Points in ascending order of percentile, up to the maximum response time (100).
    pub percentiles: Vec<DistributionPoint>,
}

/// One percentile by both clocks, microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributionPoint {
    /// Percentile, above 0 and up to 100.
    pub percentile: f64,
    /// Corrected: from the intended start, over all due requests. Absent if it falls among requests without a
    /// response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_us: Option<f64>,
    /// From the intended start, over requests with a response only; never more than `response_time_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_response_time_us: Option<f64>,
    /// Uncorrected: from the actual send, over requests with a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time_us: Option<f64>,
    /// Why a figure is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<AbsentPercentile>,
}

/// Reason why a percentile has no figure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbsentPercentile {
    /// Fewer than ten requests lie beyond it.
    TooFewRequests,
    /// It falls among requests without a response: the response time is greater than every measured one.
    Unanswered,
}

impl RequestDistribution {
    /// Point at a percentile.
    #[must_use]
    pub fn at(&self, percentile: f64) -> Option<&DistributionPoint> {
        self.percentiles.iter().find(|point| (point.percentile - percentile).abs() < 1e-9)
    }

    /// Maximum measured response time, microseconds.
    #[must_use]
    pub fn slowest_answered_us(&self) -> Option<f64> {
        self.at(100.0)?.answered_response_time_us
    }

    /// True if the clocks differ by more than 10 % and 10 µs at some percentile.
    #[must_use]
    pub fn clocks_differ(&self) -> bool {
        self.percentiles.iter().any(|point| match (point.response_time_us, point.service_time_us) {
            (Some(response), Some(service)) => response > service * 1.1 && response > service + 10.0,
            (None, Some(_)) => true,
            _ => false,
        })
    }
}
