//! Figures that noise of the machine keeps out of the estimates, and noise that the user accepted.

use crate::machine::TopProcess;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Disturbed figures by key, such as `response_time_p50_us`.
pub type DisturbedFigures = BTreeMap<String, DisturbedFigure>;

/// A figure that was measured, but is in no estimate because of noise of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisturbedFigure {
    /// Median over the disturbed trials.
    pub value: f64,
    /// Minimum.
    pub least: f64,
    /// Maximum.
    pub greatest: f64,
    /// Number of these trials.
    pub n: usize,
}

impl DisturbedFigure {
    /// The figure over the trials with these values; `None` without any.
    #[must_use]
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, greatest) = (*values.first()?, *values.last()?);
        let value = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { value, least, greatest, n: values.len() })
    }
}

/// Trials of a cell that noise of the machine keeps out of estimates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DisturbedTrials {
    /// Number of these trials.
    pub trials: usize,
    /// Number of these trials by kind of noise, such as `other-processes`.
    pub reasons: BTreeMap<String, usize>,
    /// Minimum and maximum CPU that other programs took in the trials that they disturbed, cores; absent if they disturbed
    /// none, or it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes_cores: Option<[f64; 2]>,
    /// Other programs with the most CPU in any of these trials, the greatest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<TopProcess>,
    /// Figures of the cell in these trials.
    pub figures: DisturbedFigures,
}

/// Noise of the machine that the user accepted: the estimates include figures of trials that it disturbed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AcceptedNoise {
    /// Number of disturbed trials in the estimates.
    pub trials: usize,
    /// Number of trials recorded, reruns included.
    pub of: usize,
    /// Number of these trials by kind of noise.
    pub reasons: BTreeMap<String, usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_figure_is_a_median_with_its_range() {
        let figure = |values: &[f64]| DisturbedFigure::new(values.to_vec());
        assert_eq!(figure(&[]), None);
        assert_eq!(figure(&[3.0, 1.0, 9.0]).unwrap().value, 3.0);
        let even = DisturbedFigure { value: 4.0, least: 1.0, greatest: 9.0, n: 4 };
        assert_eq!(figure(&[5.0, 1.0, 9.0, 3.0]), Some(even));
    }
}
