//! Figures of response times.

use crate::figure::Figure;
use crate::histogram::HistogramSummary;

/// Response-time figure that can have a bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeFigure {
    /// Arithmetic mean.
    Mean,
    /// Median.
    P50,
    /// 75th percentile.
    P75,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P99_9,
    /// 99.99th percentile.
    P99_99,
    /// Maximum.
    Max,
}

impl TimeFigure {
    /// Every figure; from the median on, values never decrease.
    pub const ALL: [Self; 9] = [
        Self::Mean,
        Self::P50,
        Self::P75,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P99_9,
        Self::P99_99,
        Self::Max,
    ];

    /// Name in objectives and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.figure().name()
    }

    /// Percentile, 0 to 100; absent for the mean and the maximum.
    #[must_use]
    pub fn percentile(self) -> Option<f64> {
        let quantile = self.figure().quantile().filter(|_| self != Self::Max)?;
        Some(quantile * 100.0)
    }

    /// This figure as used by verdicts.
    #[must_use]
    pub fn figure(self) -> Figure {
        match self {
            Self::Mean => Figure::Mean,
            Self::P50 => Figure::P50,
            Self::P75 => Figure::P75,
            Self::P90 => Figure::P90,
            Self::P95 => Figure::P95,
            Self::P99 => Figure::P99,
            Self::P99_9 => Figure::P99_9,
            Self::P99_99 => Figure::P99_99,
            Self::Max => Figure::Max,
        }
    }

    /// Value in a distribution, microseconds; absent if it falls among requests without a response.
    #[must_use]
    pub fn of(self, times: &HistogramSummary) -> Option<f64> {
        times.figure(self.figure())
    }
}
