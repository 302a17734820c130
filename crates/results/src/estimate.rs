//! Estimates over trials.

use crate::figure::Figure;
use serde::{Deserialize, Serialize};

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean over the trials.
    pub estimate: f64,
    /// Lower end of the 95 % confidence interval; absent with a single trial.
    pub low: Option<f64>,
    /// Upper end; absent with a single trial.
    pub high: Option<f64>,
    /// Number of trials. For a difference between two modes: number of repeats that have both, or if repeats
    /// cannot be paired, number of trials of the mode that has fewer.
    pub n: usize,
    /// Ends of the 95 % interval of this difference by itself, which excludes zero, if the difference is not shown among all that
    /// the run tests: `low` and `high` then hold for these differences together. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<[f64; 2]>,
}

impl Estimate {
    /// Single figure without an interval.
    #[must_use]
    pub fn single(estimate: f64) -> Self {
        Self { estimate, low: None, high: None, n: 1, alone: None }
    }

    /// Applies an increasing function to the estimate and both ends.
    #[must_use]
    pub fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Self {
            estimate: function(self.estimate),
            low: self.low.map(&function),
            high: self.high.map(&function),
            n: self.n,
            alone: self.alone.map(|ends| ends.map(&function)),
        }
    }

    /// Applies a decreasing function to the estimate and both ends, which are swapped.
    #[must_use]
    pub fn map_reversed(self, function: impl Fn(f64) -> f64) -> Self {
        let mapped = self.map(function);
        let alone = mapped.alone.map(|[low, high]| [high, low]);
        Self { low: mapped.high, high: mapped.low, alone, ..mapped }
    }

    /// With the interval of this difference by itself: the one for a comparison with a figure from outside the run.
    #[must_use]
    pub fn by_itself(self) -> Self {
        match self.alone {
            Some([low, high]) => Self { low: Some(low), high: Some(high), alone: None, ..self },
            None => self,
        }
    }

    /// True if the interval is entirely on one side of zero: the difference is significant.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        matches!((self.low, self.high), (Some(low), Some(high)) if low > 0.0 || high < 0.0)
    }
}

/// Percentiles over trials, microseconds. A percentile is absent if it falls among requests without a
/// response in some trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Arithmetic mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Estimate>,
    /// Median.
    pub p50: Option<Estimate>,
    /// 75th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p75: Option<Estimate>,
    /// 90th percentile.
    pub p90: Option<Estimate>,
    /// 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95: Option<Estimate>,
    /// 99th percentile.
    pub p99: Option<Estimate>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<Estimate>,
    /// 99.99th percentile; absent if fewer than ten requests lie beyond it in some trial.
    #[serde(rename = "p99.99", default, skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<Estimate>,
    /// Maximum over all trials, without an interval; absent if a request had no response, which ranks above
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Estimate>,
    /// Percentiles that fall among requests without a response; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<CensoredPercentiles>,
}

/// Percentiles that fall among requests without a response in some trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CensoredPercentiles {
    /// Lowest such percentile; all higher ones fall there too.
    pub from: Figure,
    /// Lower bound of these percentiles, microseconds; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_us: Option<f64>,
}

impl Percentiles {
    /// Set if a percentile, or the maximum, falls among requests without a response.
    #[must_use]
    pub fn censored(&self, figure: Figure) -> Option<CensoredPercentiles> {
        let quantile = figure.quantile()?;
        let is_absent = self.figure(figure).is_none();
        self.censored
            .filter(|censored| is_absent && censored.from.quantile().is_some_and(|from| quantile >= from))
    }

    /// Value of a figure; absent if there is none.
    #[must_use]
    pub fn figure(&self, figure: Figure) -> Option<Estimate> {
        let Self { mean, p50, p75, p90, p95, p99, p99_9, p99_99, max, .. } = self;
        figure.of_times([mean, p50, p75, p90, p95, p99, p99_9, p99_99, max]).copied().flatten()
    }
}
