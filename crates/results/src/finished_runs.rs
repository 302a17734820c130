//! Parts that a comparison of finished runs adds to [`Comparison`](crate::Comparison).

use serde::{Deserialize, Serialize};

/// Sources of a comparison of finished runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FinishedRuns {
    /// True if runs of different environments were compared on request.
    pub across_environments: bool,
    /// Cells and figures that only one side has, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
    /// Limits of the sources, such as a result without a histogram, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// The history that shows the variation between runs; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryUse>,
}

/// Use of a history in a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryUse {
    /// Path of the history, as given.
    pub file: String,
    /// Runs in it, without the judged ones.
    pub runs: usize,
    /// Of these, runs of the environment that is compared.
    pub used: usize,
    /// Numbers of lines that could not be read, from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_lines: Vec<usize>,
}

/// Variation of a figure between finished runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BetweenRuns {
    /// Judged run, if several runs are judged one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_run: Option<String>,
    /// True for a load without a mesh of its own: `cell.mode` is then `none`, and means nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_mode: bool,
    /// Runs of the history that have the figure, since its last change.
    pub runs: usize,
    /// Standard deviation between these runs, as a fraction; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// First run after the last change of the figure in the history; absent if it never changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The two modes of the history; absent if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bimodal: Option<Modes>,
    /// Probability that a judged run is worse than a run of the history, ties counting half; absent without a history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superiority: Option<f64>,
}

/// The two groups of a bimodal series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modes {
    /// Mean of the lower group.
    pub lower: f64,
    /// Runs in the lower group.
    pub lower_runs: usize,
    /// Mean of the upper group.
    pub upper: f64,
    /// Runs in the upper group.
    pub upper_runs: usize,
}
