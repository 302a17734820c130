//! Latency that a mode adds to its baseline.

use crate::estimate::Estimate;
use crate::figure::Figure;
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
    /// Difference of a percentile; absent for other figures.
    #[must_use]
    pub fn difference(&self, figure: Figure) -> Option<Estimate> {
        match figure {
            Figure::P50 => self.p50,
            Figure::P90 => self.p90,
            Figure::P99 => self.p99,
            _ => None,
        }
    }

    /// Places of a percentile's difference and verdict; absent for other figures.
    pub fn place(&mut self, figure: Figure) -> Option<(&mut Option<Estimate>, &mut Option<FindingVerdict>)> {
        match figure {
            Figure::P50 => Some((&mut self.p50, &mut self.verdicts.p50)),
            Figure::P90 => Some((&mut self.p90, &mut self.verdicts.p90)),
            Figure::P99 => Some((&mut self.p99, &mut self.verdicts.p99)),
            _ => None,
        }
    }

    /// Difference of a percentile and its verdict; absent for other figures.
    #[must_use]
    pub fn judged(&self, figure: Figure) -> Option<(Estimate, FindingVerdict)> {
        let verdict = match figure {
            Figure::P50 => self.verdicts.p50,
            Figure::P90 => self.verdicts.p90,
            Figure::P99 => self.verdicts.p99,
            _ => None,
        };
        self.difference(figure).zip(verdict)
    }
}
