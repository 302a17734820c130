//! `meshmeter.history-course/1`: the course of each figure over a history, with its changes.

use crate::estimate::Estimate;
use crate::factor::OwnedCellKey;
use crate::finished_runs::Modes;
use crate::history::RUN_SOURCE;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`HistoryCourse::schema`].
pub const HISTORY_COURSE_SCHEMA: &str = "meshmeter.history-course/1";

/// Result of `meshmeter history show`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryCourse {
    /// Always [`HISTORY_COURSE_SCHEMA`].
    pub schema: String,
    /// The history's file.
    pub file: String,
    /// Runs in the history.
    pub runs: usize,
    /// Numbers of lines that could not be read, from 1.
    pub skipped_lines: Vec<usize>,
    /// Runs of one environment and one set of settings each, in the order of their first runs.
    pub groups: Vec<HistoryGroup>,
}

/// Runs that share environment and settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryGroup {
    /// Source of the runs, as in [`HistoryRun::source`](crate::HistoryRun::source).
    pub source: String,
    /// Name of the experiment or target.
    pub name: String,
    /// Facts that all runs share, such as the kernel, by name.
    pub environment: BTreeMap<String, String>,
    /// Number of runs.
    pub runs: usize,
    /// Figures.
    pub series: Vec<SeriesCourse>,
}

impl HistoryGroup {
    /// True if the cells of its runs have modes.
    #[must_use]
    pub fn has_modes(&self) -> bool {
        self.source == RUN_SOURCE
    }
}

/// A figure over the runs of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesCourse {
    /// The figure.
    pub key: Metric,
    /// The cell.
    pub cell: OwnedCellKey,
    /// Values in the order of the history.
    pub points: Vec<CoursePoint>,
    /// Numbers of the group's runs that are left out: without a usable value of this figure, or with one that is not above 0, which
    /// has no ratio to others.
    pub left_out: Vec<usize>,
    /// Parts without a change. They are adjacent and cover all points.
    pub segments: Vec<CourseSegment>,
    /// Changes between segments.
    pub changes: Vec<HistoryChange>,
}

/// A run's value of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoursePoint {
    /// Number of the run in its group, from 1. Runs without a value of this figure keep theirs.
    pub number: usize,
    /// Label or path of the run.
    pub run: String,
    /// Start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The value.
    pub value: f64,
}

/// Part of a series without a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CourseSegment {
    /// Position of its first point in `points`.
    pub from: usize,
    /// Position after its last point.
    pub to: usize,
    /// Geometric mean.
    pub mean: f64,
    /// Standard deviation between runs, as a fraction; absent with one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The two modes, if the segment is bimodal: its mean says little then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bimodal: Option<Modes>,
}

/// A change of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryChange {
    /// Position of the first point after it in `points`.
    pub at: usize,
    /// Run of this point: label or path.
    pub run: String,
    /// Segment after the change divided by the one before, with a 95 % interval as if the place had been known.
    pub ratio: Estimate,
    /// Probability that a run after the change is worse than one before, ties counting half.
    pub superiority: f64,
    /// Programs that differ between the last run before and the first one after.
    pub programs: Vec<String>,
}
