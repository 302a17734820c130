//! Estimates over trials.

use super::figure::Figure;
use super::finding::FindingVerdict;
use crate::objective::TimeFigure;
use serde::{Deserialize, Serialize};

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean over the trials.
    pub estimate: f64,
    /// Lower end of the 95 % interval; absent where a single trial gives none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Number of trials; of a difference between two modes, the number of repeats that have both, or of trials of the mode
    /// that has fewer where repeats do not pair up. 0 in results of earlier versions.
    #[serde(default)]
    pub n: usize,
}

impl Estimate {
    /// A single figure without an interval.
    #[must_use]
    pub fn single(estimate: f64) -> Self {
        Self { estimate, low: None, high: None, n: 1 }
    }

    /// Applies an increasing function to the estimate and both ends.
    #[must_use]
    pub fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Self {
            estimate: function(self.estimate),
            low: self.low.map(&function),
            high: self.high.map(&function),
            n: self.n,
        }
    }

    /// Applies a decreasing function to the estimate and both ends, which change places.
    #[must_use]
    pub fn map_reversed(self, function: impl Fn(f64) -> f64) -> Self {
        let mapped = self.map(function);
        Self { low: mapped.high, high: mapped.low, ..mapped }
    }

    /// Whether the interval lies wholly on one side of zero: a difference is shown.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        matches!((self.low, self.high), (Some(low), Some(high)) if low > 0.0 || high < 0.0)
    }
}

/// Percentiles over trials, microseconds. A percentile is absent if it falls among requests without a response in some trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Arithmetic mean; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Estimate>,
    /// Median.
    pub p50: Option<Estimate>,
    /// 75th percentile; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p75: Option<Estimate>,
    /// 90th percentile.
    pub p90: Option<Estimate>,
    /// 95th percentile; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<Estimate>,
    /// 99th percentile.
    pub p99: Option<Estimate>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<Estimate>,
    /// 99.99th percentile; absent where fewer than ten requests of some trial lie beyond it.
    #[serde(rename = "p99.99", default, skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<Estimate>,
    /// The greatest of all trials, without an interval; absent where a request had no response, which ranks above all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Estimate>,
    /// Which of them fall among requests without a response; absent if none does, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<CensoredPercentiles>,
}

/// Percentiles that fall among requests without a response in some trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CensoredPercentiles {
    /// The lowest of them; all higher ones do too.
    pub from: Figure,
    /// They are greater than this, microseconds; absent where nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_us: Option<f64>,
}

impl Percentiles {
    /// Set where a percentile, or the maximum, falls among requests without a response.
    #[must_use]
    pub fn censored(&self, figure: TimeFigure) -> Option<CensoredPercentiles> {
        let quantile = figure.figure().quantile()?;
        let is_absent = self.figure(figure).is_none();
        self.censored
            .filter(|censored| is_absent && censored.from.quantile().is_some_and(|from| quantile >= from))
    }

    /// A figure; absent where there is none.
    #[must_use]
    pub fn figure(&self, figure: TimeFigure) -> Option<Estimate> {
        match figure {
            TimeFigure::Mean => self.mean,
            TimeFigure::P50 => self.p50,
            TimeFigure::P75 => self.p75,
            TimeFigure::P90 => self.p90,
            TimeFigure::P95 => self.p95,
            TimeFigure::P99 => self.p99,
            TimeFigure::P99_9 => self.p99_9,
            TimeFigure::P99_99 => self.p99_99,
            TimeFigure::Max => self.max,
        }
    }
}

/// Differences of percentiles to another mode, microseconds. Absent if either mode's percentile is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AddedLatency {
    /// Of the median.
    pub p50: Option<Estimate>,
    /// Of the 90th percentile.
    pub p90: Option<Estimate>,
    /// Of the 99th percentile.
    pub p99: Option<Estimate>,
    /// Verdict on each difference, among all that the run tests (docs/decisions/0017-families.md). Absent in results of earlier
    /// versions.
    #[serde(default)]
    pub verdicts: AddedVerdicts,
}

/// Verdicts on differences of percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AddedVerdicts {
    /// Of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<FindingVerdict>,
    /// Of the 90th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<FindingVerdict>,
    /// Of the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<FindingVerdict>,
}

impl AddedLatency {
    /// The difference of a percentile, and whether it is shown; results of earlier versions have the interval alone to tell.
    /// Absent for other figures.
    #[must_use]
    pub fn judged(&self, figure: TimeFigure) -> Option<(Estimate, FindingVerdict)> {
        let (estimate, verdict) = match figure {
            TimeFigure::P50 => (self.p50, self.verdicts.p50),
            TimeFigure::P90 => (self.p90, self.verdicts.p90),
            TimeFigure::P99 => (self.p99, self.verdicts.p99),
            _ => (None, None),
        };
        let estimate = estimate?;
        Some((estimate, verdict.unwrap_or_else(|| FindingVerdict::of(&estimate))))
    }
}
