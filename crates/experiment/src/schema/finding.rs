//! Findings as data, for programs; their sentences are among the summary's `findings`.

use super::estimate::Estimate;
use super::factor::Factors;
use super::load_point::LoadPoint;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// A finding about a driver, a call or a service of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingRecord {
    /// What is said.
    pub kind: FindingKind,
    /// The mode that it is about.
    pub mode: Mode,
    /// The mode that it is compared with; absent where the comparison is within the mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Mode>,
    /// Values of the factors; empty in an experiment without any.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load.
    pub load: LoadPoint,
    /// Name of the driver, `from → to` of a call, or name of the service. Copies in several namespaces have the name
    /// without its namespace.
    pub subject: String,
    /// How many were candidates.
    pub candidates: usize,
    /// What is compared: `response_time_p99_us`, `response_time_mean_us`, `response_time_p50_us` or `cpu_cores`.
    pub figure: String,
    /// The figure itself, in `mode`.
    pub value: f64,
    /// How much it is above what it is compared with. The interval holds for the greatest of all candidates.
    pub estimate: Estimate,
    /// Whether that is shown.
    pub verdict: FindingVerdict,
    /// Repeats that it rests on.
    pub n: usize,
    /// Repeats recorded.
    pub of: usize,
    /// The same as a sentence.
    pub text: String,
}

/// What a finding says.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The driver with the longest response times, against the median of all drivers.
    SlowestDriver,
    /// The call whose median grew most against the baseline.
    GreatestAddedTime,
    /// The service whose CPU, that of the proxies in its pods included, grew most against the baseline.
    GreatestAddedCpu,
}

/// Whether a difference is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingVerdict {
    /// The interval lies above zero.
    Shown,
    /// The interval includes zero.
    NotShown,
    /// There is no interval.
    CannotTell,
}

impl FindingVerdict {
    /// Of a difference.
    #[must_use]
    pub fn of(difference: &Estimate) -> Self {
        match difference.low {
            None => Self::CannotTell,
            Some(low) if low > 0.0 => Self::Shown,
            Some(_) => Self::NotShown,
        }
    }
}
