//! Comparison of factor values that are words: paths, switches, scenarios.

use crate::Mode;
use crate::estimate::Estimate;
use crate::factor::{FactorValue, Factors};
use crate::finding_verdict::FindingVerdict;
use crate::load_point::LoadPoint;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// One value of a factor compared with the first one, everything else equal, by repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorDifference {
    /// Dotted key of the factor.
    pub factor: String,
    /// The mode.
    pub mode: Mode,
    /// The other factors' values; empty if there is one factor.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load. Parts of it that the factor sets have the value of `from`.
    pub load: LoadPoint,
    /// First value in the experiment.
    pub from: FactorValue,
    /// Compared value.
    pub to: FactorValue,
    /// The figure. Memory of istiod is anonymous memory between values of `components.…` if all trials have read
    /// it, and otherwise resident memory.
    pub figure: Metric,
    /// Figure with `to` minus figure with `from`, in its unit.
    pub estimate: Estimate,
    /// Difference as a fraction of the figure with `from`; absent if a value is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative: Option<Estimate>,
    /// Verdict, adjusted for all tests of the run.
    pub verdict: FindingVerdict,
    /// True if both values ran the same programs, by their digests: a difference is chance.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_programs: bool,
}

impl FactorDifference {
    /// True if both compare the same cells.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        (&self.factor, self.mode, &self.factors, &self.load, &self.to)
            == (&other.factor, other.mode, &other.factors, &other.load, &other.to)
    }
}
