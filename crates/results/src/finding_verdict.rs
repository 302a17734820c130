//! Verdicts on findings.

use crate::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Verdict on a finding.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingVerdict {
    /// Significant, adjusted for all tests of the run.
    Shown,
    /// Not significant.
    NotShown,
    /// There is no interval.
    CannotTell,
}

impl FindingVerdict {
    /// Verdict on a single difference, in either direction.
    #[must_use]
    pub fn from_interval(difference: &Estimate) -> Self {
        match difference.low {
            None => Self::CannotTell,
            Some(_) if difference.excludes_zero() => Self::Shown,
            Some(_) => Self::NotShown,
        }
    }

    /// Verdict on an increase.
    #[must_use]
    pub fn of_increase(difference: &Estimate) -> Self {
        match Self::from_interval(difference) {
            Self::Shown if difference.estimate < 0.0 => Self::NotShown,
            verdict => verdict,
        }
    }
}
