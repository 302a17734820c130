//! Effect of factors with numeric values on figures of a run.

use crate::Mode;
use crate::estimate::Estimate;
use crate::factor::Factors;
use crate::finding_verdict::FindingVerdict;
use crate::load_point::LoadPoint;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// Effect of one factor on a figure, other factors equal, over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorEffect {
    /// Dotted key of the factor.
    pub factor: String,
    /// Its values in the unit of the key (cores, bytes, seconds, a fraction, or a plain number), ascending:
    /// two or more.
    pub values: Vec<f64>,
    /// The other factors' values; empty if there is one factor.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The figure. The unit is at the end of its name.
    pub figure: Metric,
    /// Mode.
    pub mode: Mode,
    /// The proxy; absent for a figure of the whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The load; absent for a figure before the load, which is common to all loads. Parts of it that the
    /// factor sets (connections, payload) have the factor's minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadPoint>,
    /// Change per unit of the factor, in the figure's unit: the slope of a line through all values.
    pub per_unit: Estimate,
    /// Figure at the factor's maximum minus figure at its minimum.
    pub from_least_to_greatest: Estimate,
    /// Verdict on the slope, adjusted for all tests of the run.
    pub verdict: FindingVerdict,
}

impl FactorEffect {
    /// True if both are effects of the factor in the same cells.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        (&self.factor, self.mode, &self.factors, &self.load)
            == (&other.factor, other.mode, &other.factors, &other.load)
    }

    /// Change from the factor's minimum to its maximum, as it stands beside the verdict. The verdict is on the slope over all
    /// values: where the two ends alone do not show what the slope shows, it is the change along the line.
    #[must_use]
    pub fn change(&self) -> Estimate {
        let ends = self.from_least_to_greatest;
        match (self.verdict, self.values.first(), self.values.last()) {
            (FindingVerdict::Shown, Some(least), Some(greatest)) if !ends.excludes_zero() => {
                self.per_unit.map(|slope| slope * (greatest - least))
            }
            _ => ends,
        }
    }
}
