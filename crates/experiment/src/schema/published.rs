//! Figures of others beside those of a run.

use super::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// A figure that a study's authors published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Who and which version, such as `Istio 1.24`.
    pub source: String,
    /// What was measured.
    pub what: String,
    /// The figure with its unit, as published.
    pub value: String,
    /// This run's figure for the same, with its unit; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// The same as a number, where it is a single one: cores, bytes, microseconds, or a fraction for what is relative to
    /// another mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_estimate: Option<Estimate>,
    /// Whether this run agrees with what was published: its whole interval lies within `margin` of the published number, or
    /// wholly beyond. Where that says `higher` or `lower`, the interval lies on that side of none, or not. Absent where the
    /// interval cannot tell, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
    /// The margin, as a fraction of the published number; absent where the word or the range that was published needs none,
    /// and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// This run's figure over the published one, where both are a single number: of several proxies their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// What differs between the two.
    pub differs: String,
}
