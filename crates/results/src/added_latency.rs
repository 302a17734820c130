//! Latency that a mode adds to its baseline.

use crate::TimeFigure;
use crate::estimate::Estimate;
use crate::finding_verdict::FindingVerdict;
use serde::{Deserialize, Serialize};

/// Differences of percentiles to another mode, microseconds. Absent if the percentile is absent in either
/// mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AddedLatency {
    /// Difference of the median.
    pub p50: Option<Estimate>,
    /// Difference of the 90th percentile.
    pub p90: Option<Estimate>,
    /// Difference of the 99th percentile.
    pub p99: Option<Estimate>,
    /// Verdict on each difference, adjusted for all tests of the run (docs/decisions/0017-families.md).
    /// Absent in results from earlier versions.
    #[serde(default)]
    pub verdicts: AddedVerdicts,
}

/// Verdicts on differences of percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AddedVerdicts {
    /// Verdict on the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<FindingVerdict>,
    /// Verdict on the 90th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<FindingVerdict>,
    /// Verdict on the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<FindingVerdict>,
}

impl AddedLatency {
    /// Difference of a percentile and its verdict; results from earlier versions are judged by the interval
    /// alone. Absent for other figures.
    #[must_use]
    pub fn judged(&self, figure: TimeFigure) -> Option<(Estimate, FindingVerdict)> {
        let (estimate, verdict) = match figure {
            TimeFigure::P50 => (self.p50, self.verdicts.p50),
            TimeFigure::P90 => (self.p90, self.verdicts.p90),
            TimeFigure::P99 => (self.p99, self.verdicts.p99),
            _ => (None, None),
        };
        let estimate = estimate?;
        Some((estimate, verdict.unwrap_or_else(|| FindingVerdict::from_interval(&estimate))))
    }
}
