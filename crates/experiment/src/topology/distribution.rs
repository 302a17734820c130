//! Distributions of sizes (bytes) and times (seconds).

/// Fixed or random amount; never negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Constant.
    Fixed(f64),
    /// Uniform between two bounds.
    Uniform {
        /// Minimum amount.
        low: f64,
        /// Maximum amount.
        high: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean amount.
        mean: f64,
    },
    /// Log-normal: most amounts are small, a few large.
    LogNormal {
        /// Median amount.
        median: f64,
        /// 99th percentile, above the median.
        p99: f64,
    },
}

/// 99th percentile of the standard normal distribution.
pub const NORMAL_P99: f64 = 2.326_347_874_040_841;

impl Distribution {
    /// Mean amount.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Fixed(amount) => amount,
            Self::Uniform { low, high } => f64::midpoint(low, high),
            Self::Exponential { mean } => mean,
            Self::LogNormal { median, .. } => median * (self.sigma().powi(2) / 2.0).exp(),
        }
    }

    /// Amount for a random draw: `uniform` is in [0, 1), `normal` is from the standard normal distribution.
    #[must_use]
    pub fn draw(&self, uniform: f64, normal: f64) -> f64 {
        match *self {
            Self::Fixed(amount) => amount,
            Self::Uniform { low, high } => low + (high - low) * uniform,
            Self::Exponential { mean } => -mean * (1.0 - uniform).ln(),
            Self::LogNormal { median, .. } => median * (self.sigma() * normal).exp(),
        }
    }

    /// The amount, if it is constant.
    #[must_use]
    pub fn fixed(&self) -> Option<f64> {
        match *self {
            Self::Fixed(amount) => Some(amount),
            _ => None,
        }
    }

    /// Standard deviation of the logarithm of a log-normal amount; 0 for others.
    #[must_use]
    pub fn sigma(&self) -> f64 {
        match *self {
            Self::LogNormal { median, p99 } => (p99 / median).ln() / NORMAL_P99,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_normal_has_its_median_and_p99() {
        let sizes = Distribution::LogNormal { median: 100.0, p99: 1000.0 };
        assert!((sizes.draw(0.0, 0.0) - 100.0).abs() < 1e-9);
        assert!((sizes.draw(0.0, NORMAL_P99) - 1000.0).abs() < 1e-6);
        assert!(sizes.mean() > 100.0);
    }

    #[test]
    fn uniform_and_exponential_draw_from_their_quantiles() {
        assert_eq!(Distribution::Uniform { low: 2.0, high: 6.0 }.draw(0.25, 0.0), 3.0);
        assert_eq!(Distribution::Uniform { low: 2.0, high: 6.0 }.mean(), 4.0);
        let median = Distribution::Exponential { mean: 1.0 }.draw(0.5, 0.0);
        assert!((median - 2.0_f64.ln()).abs() < 1e-12);
    }
}
