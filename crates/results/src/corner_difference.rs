//! Comparison of all factors at their last values with all at their first.

use crate::Mode;
use crate::estimate::Estimate;
use crate::factor::Factors;
use crate::finding_verdict::FindingVerdict;
use crate::load_point::LoadPoint;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// All factors that can touch a mode at their last values, compared with all at their first, by repeat. For modes that two
/// or more factors can touch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CornerDifference {
    /// The mode.
    pub mode: Mode,
    /// The load. Parts of it that a factor sets have the value of `from`.
    pub load: LoadPoint,
    /// First value of each factor in the experiment.
    pub from: Factors,
    /// Last value of each factor.
    pub to: Factors,
    /// The figure.
    pub figure: Metric,
    /// Figure with `to` minus figure with `from`, in its unit.
    pub estimate: Estimate,
    /// Difference as a fraction of the figure with `from`; absent if a value is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative: Option<Estimate>,
    /// Verdict, adjusted for all tests of the run.
    pub verdict: FindingVerdict,
}

impl CornerDifference {
    /// True if both compare the same cells.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        (self.mode, &self.load, &self.to) == (other.mode, &other.load, &other.to)
    }
}
