//! Distributions of sizes (bytes) and times (seconds).

use crate::keys::value::by_text;
use results::units::{UnitError, format_duration, parse_duration, shortened};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

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

/// Distribution of times in one word: `10ms`, `exp:10ms` (mean), `uniform:5ms..15ms`, `log-normal:10ms..80ms` (median and
/// 99th percentile).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times(pub Distribution);

impl Times {
    /// Always this time.
    #[must_use]
    pub fn fixed(time: Duration) -> Self {
        Self(Distribution::Fixed(time.as_secs_f64()))
    }
}

by_text!(Times);

impl FromStr for Times {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let seconds = |text: &str| parse_duration(text).map(|time| time.as_secs_f64());
        let Some((kind, values)) = text.trim().split_once(':') else {
            return seconds(text).map(Distribution::Fixed).map(Self);
        };
        if kind == "exp" {
            return seconds(values).map(|mean| Self(Distribution::Exponential { mean }));
        }
        let range = |text: &str| {
            let (least, most) = text.split_once("..")?;
            let (least, most) = (seconds(least).ok()?, seconds(most).ok()?);
            (least < most).then_some((least, most))
        };
        match (kind, range(values)) {
            ("uniform", Some((low, high))) => Ok(Self(Distribution::Uniform { low, high })),
            ("log-normal", Some((median, p99))) if median > 0.0 => {
                Ok(Self(Distribution::LogNormal { median, p99 }))
            }
            _ => Err(UnitError {
                given: shortened(text),
                quantity: "distribution of times",
                expected: "expected `10ms`, `exp:10ms`, `uniform:5ms..15ms` or `log-normal:10ms..80ms`"
                    .to_owned(),
                example: "exp:10ms",
            }),
        }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |seconds| format_duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        match self.0 {
            Distribution::Fixed(amount) => f.write_str(&time(amount)),
            Distribution::Exponential { mean } => write!(f, "exp:{}", time(mean)),
            Distribution::Uniform { low, high } => write!(f, "uniform:{}..{}", time(low), time(high)),
            Distribution::LogNormal { median, p99 } => {
                write!(f, "log-normal:{}..{}", time(median), time(p99))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_read() {
        for text in ["0s", "10ms", "exp:1500us", "uniform:5ms..15ms", "log-normal:10ms..80ms"] {
            assert_eq!(text.parse::<Times>().unwrap().to_string(), text.replace("1500us", "1.5ms"), "{text}");
        }
    }

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
