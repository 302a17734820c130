//! Estimates with their intervals as text.

use super::ABSENT;
use super::number::{decimals_for, fixed, with_unit};
use super::quantity::cores_number;
use results::Estimate;
use serde::Serialize;

/// An estimate and its interval as text. The number of digits is limited by the interval: two digits of its
/// half-width, at most three of the figures.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: String,
    /// `0.35–0.41`, or `−0.02 to 0.05` if an end is below zero; `None` without an interval.
    pub range: Option<String>,
}

impl Interval {
    /// A missing figure.
    #[must_use]
    pub fn absent() -> Self {
        Self { estimate: ABSENT.to_owned(), range: None }
    }

    /// The estimate in its own unit.
    #[must_use]
    pub fn new(estimate: &Estimate) -> Self {
        Self::scaled(estimate, 1.0)
    }

    /// The estimate multiplied by a factor, to change its unit.
    #[must_use]
    pub fn scaled(estimate: &Estimate, factor: f64) -> Self {
        Self::rounded(estimate, factor, 9)
    }

    /// The estimate multiplied by a factor, with at most as many decimals as the measurement resolves.
    pub(super) fn rounded(estimate: &Estimate, factor: f64, most_decimals: i32) -> Self {
        let middle = estimate.estimate * factor;
        let (Some(low), Some(high)) = (finite(estimate.low), finite(estimate.high)) else {
            let decimals = decimals_for(middle.abs(), 3).min(most_decimals);
            return Self { estimate: fixed(middle, decimals), range: None };
        };
        let (low, high) = (low * factor, high * factor);
        let greatest = [middle, low, high].into_iter().map(f64::abs).fold(0.0, f64::max);
        let decimals = decimals_for(greatest, 3).min(decimals_for((high - low) / 2.0, 2)).min(most_decimals);
        // An interval that excludes zero is told from one that includes it.
        let near = if low > 0.0 { low } else { -high };
        let decimals =
            if near > 0.0 { decimals.max(decimals_for(near, 1).min(decimals + 3)) } else { decimals };
        let separator = if low < 0.0 { " to " } else { "–" };
        Self {
            estimate: fixed(middle, decimals),
            range: Some(format!("{}{separator}{}", fixed(low, decimals), fixed(high, decimals))),
        }
    }

    /// `0.38 (0.35–0.41)`.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.range {
            Some(range) => format!("{} ({range})", self.estimate),
            None => self.estimate.clone(),
        }
    }

    /// `0.38 ms (0.35–0.41)`.
    #[must_use]
    pub fn text_with_unit(&self, unit: &str) -> String {
        let estimate = with_unit(&self.estimate, unit);
        match &self.range {
            Some(range) => format!("{estimate} ({range})"),
            None => estimate,
        }
    }

    /// Margin such as `±0.04`: the larger distance of an end from the estimate, rounded up to one digit.
    #[must_use]
    pub fn margin(&self) -> Option<String> {
        let number = |text: &str| text.replace('\u{2212}', "-").parse::<f64>().ok();
        let range = self.range.as_deref()?;
        let (low, high) = range.split_once(" to ").or_else(|| range.split_once('–'))?;
        let (estimate, low, high) = (number(&self.estimate)?, number(low)?, number(high)?);
        let margin = (estimate - low).max(high - estimate);
        let decimals = decimals_for(margin, 1).max(0);
        let scale = 10_f64.powi(decimals);
        // Do not round up a value that exceeds a round one only by a binary rounding error.
        Some(format!("±{}", fixed((margin * scale - 1e-6).ceil() / scale, decimals)))
    }

    /// As a difference: with a plus sign if it is above zero.
    #[must_use]
    pub fn signed(mut self) -> Self {
        let above_zero = self.estimate.parse::<f64>().is_ok_and(|estimate| estimate > 0.0);
        if above_zero {
            self.estimate.insert(0, '+');
        }
        self
    }
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// CPU with its interval, to at most a thousandth of a core.
#[must_use]
pub fn cores_interval(estimate: &Estimate) -> Interval {
    let range = match (finite(estimate.low), finite(estimate.high)) {
        (Some(low), Some(high)) if low < 0.0 => {
            Some(format!("{} to {}", cores_number(low), cores_number(high)))
        }
        (Some(low), Some(high)) => Some(format!("{}–{}", cores_number(low), cores_number(high))),
        _ => None,
    };
    Interval { estimate: cores_number(estimate.estimate), range }
}
