//! Published figures, compared with those of a run.

use crate::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// A figure published by the authors of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Author and version, such as `Istio 1.24`.
    pub source: String,
    /// Measured quantity.
    pub what: String,
    /// Published value with its unit.
    pub value: String,
    /// This run's value with its unit; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// This run's value as a number, if it is a single one: cores, bytes, microseconds, or a fraction for
    /// values relative to another mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_estimate: Option<Estimate>,
    /// Whether this run agrees with the published figure. True if the whole interval is within `margin` of
    /// the published number, false if it is entirely outside. For `higher` or `lower`: whether the interval
    /// is on that side of no difference. Absent if the interval does not decide it, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
    /// Margin, as a fraction of the published number; absent if the published keyword or range needs none,
    /// and in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Ratio of this run's figure to the published one, if both are single numbers; for several proxies, of
    /// their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Differences between the two setups.
    pub differs: String,
}
