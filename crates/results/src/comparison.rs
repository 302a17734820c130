//! `meshmeter.comparison/1`: `comparison.json`, two sets of settings compared in one run, or finished runs.

use crate::Mode;
use crate::estimate::Estimate;
use crate::factor::OwnedCellKey;
use crate::finished_runs::{BetweenRuns, FinishedRuns};
use crate::host::ComponentVersion;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// The value of [`Comparison::schema`].
pub const COMPARISON_SCHEMA: &str = "meshmeter.comparison/1";

/// Result of `meshmeter compare`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// Name of the experiment.
    pub name: String,
    /// Seed of the trial order.
    pub seed: u64,
    /// Settings compared with.
    pub base: ComparedArm,
    /// Settings that are judged.
    pub head: ComparedArm,
    /// The base once more, deployed anew in each repeat.
    pub control: ComparedArm,
    /// Looks so far: one after each repeat that has ended.
    pub looks: usize,
    /// Maximum number of looks. The error rate is shared among them.
    pub looks_planned: usize,
    /// Reason for which no further repeat was measured.
    pub ended: ComparisonEnd,
    /// One entry per cell and figure. Figures that are worse come first.
    pub figures: Vec<ComparedFigure>,
    /// Modes of the experiment that the compared settings cannot change. They are not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes_not_compared: Vec<Mode>,
    /// Programs that changed during the comparison although the settings did not; differences between the environments of
    /// finished runs.
    pub environment_changes: Vec<String>,
    /// Reasons why the comparison as a whole has failed; empty if it has not.
    pub failures: Vec<String>,
    /// Looks one by one, and what a continued comparison needs.
    #[serde(default)]
    pub course: ComparisonCourse,
    /// Verdict on the comparison.
    pub verdict: ComparisonVerdict,
    /// Sources of a comparison of finished runs; absent if the arms were measured in one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<FinishedRuns>,
}

impl Comparison {
    /// Figures with this verdict.
    pub fn with_verdict(&self, verdict: FigureVerdict) -> impl Iterator<Item = &ComparedFigure> {
        self.figures.iter().filter(move |figure| figure.verdict == verdict)
    }
}

/// Looks of a comparison, one after each repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonCourse {
    /// Time budget, seconds.
    pub budget_s: f64,
    /// Margin of all figures that the user set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Measuring time up to each look, seconds. Of a continued comparison, the time between its parts does not count.
    pub elapsed_s: Vec<f64>,
    /// Looks at each figure.
    pub figures: Vec<FigureCourse>,
}

impl ComparisonCourse {
    /// Looks at a figure of a cell.
    #[must_use]
    pub fn of(&self, key: Metric, cell: &OwnedCellKey) -> &[FigureLook] {
        let own = self.figures.iter().find(|own| own.key == key && own.cell == *cell);
        own.map_or(&[], |own| &own.looks)
    }

    /// Adds the figures of a look (from 1).
    pub fn add(&mut self, look: usize, figures: &[ComparedFigure]) {
        for ComparedFigure { key, cell, ratio, verdict, .. } in figures {
            let place = self.figures.iter().position(|own| own.key == *key && own.cell == *cell);
            let place = place.unwrap_or_else(|| {
                self.figures.push(FigureCourse { key: *key, cell: cell.clone(), looks: Vec::new() });
                self.figures.len() - 1
            });
            self.figures[place].looks.push(FigureLook { look, ratio: *ratio, verdict: *verdict });
        }
    }
}

/// Looks at one figure of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureCourse {
    /// The figure.
    pub key: Metric,
    /// The cell, as in the base.
    pub cell: OwnedCellKey,
    /// In order; looks before its first trial are absent.
    pub looks: Vec<FigureLook>,
}

/// One look at a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureLook {
    /// Number of the look, from 1.
    pub look: usize,
    /// Head divided by base and control, with the interval of this look.
    pub ratio: Option<Estimate>,
    /// Verdict at this look.
    pub verdict: FigureVerdict,
}

/// One arm of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedArm {
    /// Settings that distinguish the arm, as `key=value`; for an arm from a file of its own, the file's name; the names of
    /// finished runs.
    pub settings: Vec<String>,
    /// Trials recorded, reruns included.
    pub trials: usize,
    /// Trials whose median is usable.
    pub valid: usize,
    /// Mesh programs that the trials ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ComponentVersion>,
}

/// Reason for the end of a comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonEnd {
    /// Every figure was decided.
    Decided,
    /// No further repeat fitted into the time budget.
    Budget,
    /// The maximum number of repeats was reached.
    Repeats,
    /// The user stopped it.
    Interrupted,
    /// The environment failed.
    Failed,
    /// It still goes on, or was killed.
    Unfinished,
    /// It compares runs that had ended before.
    Recorded,
}

impl ComparisonEnd {
    /// True if the comparison ended by itself: its last look was made.
    #[must_use]
    pub fn is_by_itself(self) -> bool {
        matches!(self, Self::Decided | Self::Budget | Self::Repeats)
    }
}

/// Comparison of one figure of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedFigure {
    /// The figure.
    pub key: Metric,
    /// The cell, as in the base.
    pub cell: OwnedCellKey,
    /// Mean of the base, with a 95 % confidence interval; absent without a usable trial.
    pub base: Option<Estimate>,
    /// Mean of the head, with a 95 % confidence interval.
    pub head: Option<Estimate>,
    /// Mean of the control, with a 95 % confidence interval.
    #[serde(default)]
    pub control: Option<Estimate>,
    /// Head less base, in the unit of the figure. The interval has the confidence 1 − `error_rate` over all looks.
    pub difference: Option<Estimate>,
    /// Head divided by base, by repeat, with an interval of the same confidence; the base is the mean of base and control.
    pub ratio: Option<Estimate>,
    /// Control divided by base, with an interval over all looks: 1 unless the machine drifted.
    pub control_ratio: Option<Estimate>,
    /// The ratio with the interval by which equivalence is judged: each end is passed by chance in at most 5 % of comparisons.
    pub equivalence_ratio: Option<Estimate>,
    /// Relative difference up to which head and base count as equivalent.
    pub margin: f64,
    /// Origin of the margin.
    pub margin_source: MarginSource,
    /// Verdict.
    pub verdict: FigureVerdict,
    /// Reason for which the verdict is inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<InconclusiveReason>,
    /// Chance that the figure is called worse or better at any look if nothing changed.
    pub error_rate: f64,
    /// Of finished runs: variation between runs; absent if the arms were measured in one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_runs: Option<BetweenRuns>,
}

/// Origin of a margin.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarginSource {
    /// `--margin`.
    User,
    /// The smallest difference that the machine resolves, by its calibration.
    Calibration,
    /// Neither a margin nor a calibration of the figure is known.
    Default,
}

/// Verdict on a figure.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureVerdict {
    /// The head is worse, and not within the margin.
    Worse,
    /// Neither a difference nor equivalence is shown.
    Inconclusive,
    /// The head is better, and not within the margin.
    Better,
    /// The difference is within the margin.
    Equivalent,
}

/// Reason for which a figure is inconclusive.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InconclusiveReason {
    /// The control differs from the base, although both are the same: the machine drifted.
    MachineDrifted,
    /// The interval includes no difference, and reaches beyond the margin.
    NotDecided,
    /// Too few repeats have the figure in all arms that it needs.
    TooFewTrials,
    /// Trials of an arm have too few requests for this percentile.
    TooFewRequests,
    /// Finished runs without a history: nothing shows how far runs of the same state differ.
    RunVariationUnknown,
    /// The history has too few runs since its last change to show how far runs differ.
    TooFewRuns,
    /// The history is bimodal, and the judged runs are not beyond all its runs.
    Bimodal,
}

/// Verdict on a comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// At least one figure is worse.
    Worse,
    /// No figure is worse, and at least one is better.
    Better,
    /// Every figure is equivalent.
    Equivalent,
    /// No figure is worse, and at least one is inconclusive.
    Inconclusive,
    /// Data are missing, or the comparison did not end by itself: nothing may be concluded from it.
    Failed,
}

impl ComparisonVerdict {
    /// Verdict on figures of a comparison that has not failed.
    #[must_use]
    pub fn of_figures(figures: &[ComparedFigure]) -> Self {
        let has = |verdict| figures.iter().any(|figure| figure.verdict == verdict);
        if figures.is_empty() {
            Self::Failed
        } else if has(FigureVerdict::Worse) {
            Self::Worse
        } else if has(FigureVerdict::Inconclusive) {
            Self::Inconclusive
        } else if has(FigureVerdict::Better) {
            Self::Better
        } else {
            Self::Equivalent
        }
    }

    /// Verdict on a comparison with these figures. `is_void`: nothing may be concluded from it. `lacks_data`: a figure that is
    /// worse all the same is worse.
    #[must_use]
    pub fn new(figures: &[ComparedFigure], is_void: bool, lacks_data: bool) -> Self {
        match Self::of_figures(figures) {
            _ if is_void => Self::Failed,
            Self::Worse => Self::Worse,
            _ if lacks_data => Self::Failed,
            other => other,
        }
    }
}
