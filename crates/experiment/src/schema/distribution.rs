//! The whole distribution of a cell's requests by two clocks: corrected for coordinated omission, and not.

use serde::{Deserialize, Serialize};

/// Requests of all trials of an open-loop cell together, whose histograms are merged. A request without a response ranks
/// above every answered one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestDistribution {
    /// Trials that it is of: the valid ones; where the cell is saturated, the saturated ones too.
    pub trials: usize,
    /// The cell is saturated: its response times grow for as long as the load lasts.
    pub saturated: bool,
    /// Requests that were due in the windows.
    pub due: u64,
    /// Of which answered.
    pub answered: u64,
    /// Response times of requests without a response are greater than this, microseconds; absent if every request has one, and in
    /// results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored_above_us: Option<f64>,
    /// From the least percentile to the greatest response time (100).
    pub percentiles: Vec<DistributionPoint>,
}

/// One percentile by both clocks, microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributionPoint {
    /// Above 0, up to 100.
    pub percentile: f64,
    /// Corrected: from the intended start, over all requests that were due. Absent among those without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_us: Option<f64>,
    /// The same over the answered requests alone, which is never more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_response_time_us: Option<f64>,
    /// Uncorrected: from the actual send, over the answered requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_time_us: Option<f64>,
    /// Why a figure is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<AbsentPercentile>,
}

/// Why a percentile has no figure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbsentPercentile {
    /// Fewer than ten requests lie beyond it.
    TooFewRequests,
    /// It lies among requests without a response: the response time is greater than every measured one.
    Unanswered,
}

impl RequestDistribution {
    /// The point at a percentile.
    #[must_use]
    pub fn at(&self, percentile: f64) -> Option<&DistributionPoint> {
        self.percentiles.iter().find(|point| (point.percentile - percentile).abs() < 1e-9)
    }

    /// The greatest measured response time, microseconds.
    #[must_use]
    pub fn slowest_answered_us(&self) -> Option<f64> {
        self.at(100.0)?.answered_response_time_us
    }

    /// Whether the clocks read different distributions: at some percentile more than 10 % and 10 µs apart.
    #[must_use]
    pub fn clocks_differ(&self) -> bool {
        self.percentiles.iter().any(|point| match (point.response_time_us, point.service_time_us) {
            (Some(response), Some(service)) => response > service * 1.1 && response > service + 10.0,
            (None, Some(_)) => true,
            _ => false,
        })
    }
}
