//! Comparison of factor values that are words: paths, switches, scenarios.

use crate::Mode;
use crate::estimate::Estimate;
use crate::factor::{FactorValue, Factors};
use crate::finding_verdict::FindingVerdict;
use crate::fleet_figure::FleetFigure;
use crate::load_point::LoadPoint;
use serde::{Deserialize, Serialize};

/// Figure by which factor values are compared. The unit is at the end of its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedFigure {
    /// Median response time, microseconds.
    #[serde(rename = "response_time_p50_us")]
    ResponseTimeP50Us,
    /// 90th percentile of the response time, microseconds.
    #[serde(rename = "response_time_p90_us")]
    ResponseTimeP90Us,
    /// 99th percentile of the response time, microseconds.
    #[serde(rename = "response_time_p99_us")]
    ResponseTimeP99Us,
    /// Responses per second, in closed loops.
    RateCompleted,
    /// CPU of all proxies per 1000 requests/s, cores: the same number as milliseconds per request.
    #[serde(rename = "proxies_cpu_cores_per_1000_rps")]
    ProxiesCpuCoresPer1000Rps,
    /// Anonymous memory of all proxies under load, bytes. Resident memory depends on which pages of the program
    /// the page cache held when the process mapped them, so equal programs may differ in it.
    ProxiesMemoryAnonymousBytes,
    /// Size of all proxies' configuration, bytes; only compared for `components.…`.
    ProxiesConfigurationBytes,
    /// From objects written to their propagation to the last proxy, microseconds; only compared for
    /// `components.…`.
    ConfiguredLastUs,
    /// Figure of a fleet. Memory of istiod is anonymous memory between values of `components.…` if all trials
    /// have read it, and otherwise resident memory.
    #[serde(untagged)]
    Fleet(FleetFigure),
}

impl ComparedFigure {
    /// All figures, in the order in which they are listed.
    pub const ALL: [Self; 17] = [
        Self::ResponseTimeP50Us,
        Self::ResponseTimeP90Us,
        Self::ResponseTimeP99Us,
        Self::RateCompleted,
        Self::ProxiesCpuCoresPer1000Rps,
        Self::ProxiesMemoryAnonymousBytes,
        Self::ProxiesConfigurationBytes,
        Self::ConfiguredLastUs,
        Self::Fleet(FleetFigure::ConvergenceP50Us),
        Self::Fleet(FleetFigure::ConvergenceP90Us),
        Self::Fleet(FleetFigure::ConvergenceP99Us),
        Self::Fleet(FleetFigure::ConvergenceLastUs),
        Self::Fleet(FleetFigure::FirstConfigurationLastUs),
        Self::Fleet(FleetFigure::IstiodCpuS),
        Self::Fleet(FleetFigure::IstiodMemoryBytes),
        Self::Fleet(FleetFigure::IstiodMemoryAnonymousBytes),
        Self::Fleet(FleetFigure::BytesPerProxy),
    ];

    /// True if it is a time, in microseconds.
    #[must_use]
    pub fn is_time(self) -> bool {
        match self {
            Self::ResponseTimeP50Us
            | Self::ResponseTimeP90Us
            | Self::ResponseTimeP99Us
            | Self::ConfiguredLastUs => true,
            Self::Fleet(figure) => figure.is_time(),
            Self::RateCompleted
            | Self::ProxiesCpuCoresPer1000Rps
            | Self::ProxiesMemoryAnonymousBytes
            | Self::ProxiesConfigurationBytes => false,
        }
    }
}

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
    /// The figure.
    pub figure: ComparedFigure,
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
