//! Figures of a fleet of simulated proxies by which cells are compared.

use super::figure::Figure;
use serde::{Deserialize, Serialize};

/// A figure of a fleet; its unit is at the end of its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FleetFigure {
    /// From a change's acknowledgement to its arrival at a fleet's proxies, median, microseconds.
    ConvergenceP50Us,
    /// 90th percentile of the same, microseconds.
    ConvergenceP90Us,
    /// 99th percentile of the same, microseconds.
    ConvergenceP99Us,
    /// Until the last proxy had the slowest change, microseconds.
    ConvergenceLastUs,
    /// From the start of connecting until the last proxy had its first configuration, microseconds.
    FirstConfigurationLastUs,
    /// CPU of all istiods during a fleet's measurement, seconds.
    IstiodCpuS,
    /// Greatest resident memory of all istiods, bytes.
    IstiodMemoryBytes,
    /// Bytes that a fleet's proxies received, per proxy.
    BytesPerProxy,
}

impl FleetFigure {
    /// All figures, in the order in which they are listed.
    pub const ALL: [Self; 8] = [
        Self::ConvergenceP50Us,
        Self::ConvergenceP90Us,
        Self::ConvergenceP99Us,
        Self::ConvergenceLastUs,
        Self::FirstConfigurationLastUs,
        Self::IstiodCpuS,
        Self::IstiodMemoryBytes,
        Self::BytesPerProxy,
    ];

    /// The figure of a verdict that spoils it.
    #[must_use]
    pub fn figure(self) -> Figure {
        match self {
            Self::ConvergenceP50Us => Figure::P50,
            Self::ConvergenceP90Us => Figure::P90,
            Self::ConvergenceP99Us => Figure::P99,
            Self::ConvergenceLastUs | Self::FirstConfigurationLastUs => Figure::Max,
            Self::IstiodCpuS => Figure::Cpu,
            Self::IstiodMemoryBytes => Figure::Memory,
            Self::BytesPerProxy => Figure::Network,
        }
    }

    /// Whether it is a time, in microseconds.
    #[must_use]
    pub fn is_time(self) -> bool {
        self.figure().quantile().is_some()
    }
}
