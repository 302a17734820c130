//! Amounts that are fixed or drawn: sizes in bytes, times in seconds.

/// An amount, fixed or drawn anew each time; never negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always this.
    Fixed(f64),
    /// Uniform between two bounds.
    Uniform {
        /// Least amount.
        low: f64,
        /// Greatest amount.
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

/// The standard normal distribution's 99th percentile.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

impl Distribution {
    /// The mean amount.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Fixed(amount) => amount,
            Self::Uniform { low, high } => f64::midpoint(low, high),
            Self::Exponential { mean } => mean,
            Self::LogNormal { median, .. } => median * (self.sigma().powi(2) / 2.0).exp(),
        }
    }

    /// The amount for a draw: `uniform` from 0 to below 1, `normal` from the standard normal distribution.
    #[must_use]
    pub fn draw(&self, uniform: f64, normal: f64) -> f64 {
        match *self {
            Self::Fixed(amount) => amount,
            Self::Uniform { low, high } => low + (high - low) * uniform,
            Self::Exponential { mean } => -mean * (1.0 - uniform).ln(),
            Self::LogNormal { median, .. } => median * (self.sigma() * normal).exp(),
        }
    }

    /// Whether it is always the same.
    #[must_use]
    pub fn fixed(&self) -> Option<f64> {
        match *self {
            Self::Fixed(amount) => Some(amount),
            _ => None,
        }
    }

    fn sigma(&self) -> f64 {
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
