//! Figures of a fleet of simulated proxies that are compared between cells.

use crate::figure::Figure;
use serde::{Deserialize, Serialize};

/// Figure of a fleet. The unit is at the end of its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FleetFigure {
    /// Convergence (from a change's acknowledgement to its arrival at a proxy), median, microseconds.
    ConvergenceP50Us,
    /// Convergence, 90th percentile, microseconds.
    ConvergenceP90Us,
    /// Convergence, 99th percentile, microseconds.
    ConvergenceP99Us,
    /// Time until the last proxy had the slowest change, microseconds.
    ConvergenceLastUs,
    /// From the start of connecting until the last proxy had its first configuration, microseconds.
    FirstConfigurationLastUs,
    /// CPU of all istiods during a fleet's measurement, seconds.
    IstiodCpuS,
    /// Maximum resident memory of all istiods, bytes.
    IstiodMemoryBytes,
    /// Anonymous memory of all istiods at the end of the window, bytes. Resident memory also depends on which
    /// pages of the program the page cache held.
    IstiodMemoryAnonymousBytes,
    /// Bytes received by a fleet's proxies, per proxy.
    BytesPerProxy,
}

impl FleetFigure {
    /// All figures, in the order in which they are listed.
    pub const ALL: [Self; 9] = [
        Self::ConvergenceP50Us,
        Self::ConvergenceP90Us,
        Self::ConvergenceP99Us,
        Self::ConvergenceLastUs,
        Self::FirstConfigurationLastUs,
        Self::IstiodCpuS,
        Self::IstiodMemoryBytes,
        Self::IstiodMemoryAnonymousBytes,
        Self::BytesPerProxy,
    ];

    /// Verdict figure that spoils this figure.
    #[must_use]
    pub fn figure(self) -> Figure {
        match self {
            Self::ConvergenceP50Us => Figure::P50,
            Self::ConvergenceP90Us => Figure::P90,
            Self::ConvergenceP99Us => Figure::P99,
            Self::ConvergenceLastUs | Self::FirstConfigurationLastUs => Figure::Max,
            Self::IstiodCpuS => Figure::Cpu,
            Self::IstiodMemoryBytes | Self::IstiodMemoryAnonymousBytes => Figure::Memory,
            Self::BytesPerProxy => Figure::Network,
        }
    }

    /// True if it is a time, in microseconds.
    #[must_use]
    pub fn is_time(self) -> bool {
        self.figure().quantile().is_some()
    }
}
