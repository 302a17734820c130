//! Churn as text: a share of the pods per minute, or pods per second.

use super::{UnitError, format_fraction, format_rate, parse_fraction, parse_rate};
use std::fmt;
use std::str::FromStr;

/// Continuous replacement of pods: each is deleted, and another takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Churn {
    /// No churn.
    #[default]
    None,
    /// This fraction of all pods per minute.
    FractionPerMinute(f64),
    /// This number of pods per second.
    PodsPerSecond(f64),
}

impl Churn {
    /// Numeric value: a fraction per minute, or pods per second.
    #[must_use]
    pub fn amount(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::FractionPerMinute(amount) | Self::PodsPerSecond(amount) => amount,
        }
    }

    /// Pods replaced per second in a mesh with this many pods.
    #[must_use]
    pub fn pods_per_s(self, pods: usize) -> f64 {
        match self {
            Self::None => 0.0,
            Self::FractionPerMinute(fraction) => fraction * pods as f64 / 60.0,
            Self::PodsPerSecond(rate) => rate,
        }
    }
}

impl fmt::Display for Churn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("0"),
            Self::FractionPerMinute(fraction) => write!(f, "{}/m", format_fraction(*fraction)),
            Self::PodsPerSecond(rate) => write!(f, "{}/s", format_rate(*rate)),
        }
    }
}

impl FromStr for Churn {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let refused = |error: UnitError| UnitError {
            quantity: "churn",
            expected: "expected a percentage of the pods per minute, or pods per second".to_owned(),
            example: "25%/m",
            ..error
        };
        let trimmed = text.trim();
        if ["0", "0%", "none"].contains(&trimmed) {
            return Ok(Self::None);
        }
        let churn = match trimmed.strip_suffix("/m").filter(|share| share.ends_with('%')) {
            Some(share) => Self::FractionPerMinute(parse_fraction(share).map_err(refused)?),
            None => Self::PodsPerSecond(parse_rate(trimmed).map_err(refused)?),
        };
        Ok(if churn == Self::FractionPerMinute(0.0) { Self::None } else { churn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn churn_is_fraction_per_minute_or_pods_per_second() {
        for (text, pods_per_s, written) in [
            ("25%/m", 5.0, "25%/m"),
            ("10/s", 10.0, "10/s"),
            ("120/m", 2.0, "2/s"),
            ("0", 0.0, "0"),
            ("0%/m", 0.0, "0"),
        ] {
            let churn: Churn = text.parse().unwrap();
            assert!((churn.pods_per_s(1200) - pods_per_s).abs() < 1e-9, "{text}");
            assert_eq!(churn.to_string(), written);
            assert_eq!(written.parse::<Churn>().unwrap(), churn);
        }
        for refused in ["25%", "25%/h", "fast", "-1/s", ""] {
            assert_eq!(refused.parse::<Churn>().unwrap_err().quantity, "churn", "{refused}");
        }
    }
}
