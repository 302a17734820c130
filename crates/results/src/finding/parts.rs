//! Parts that findings of several kinds share.

use crate::Mode;
use crate::cell::Cell;
use crate::estimate::Estimate;
use crate::factor::{Conditions, OwnedCellKey};
use crate::finding_verdict::FindingVerdict;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// Trials or repeats that a finding is based on or about.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Trials {
    /// Number of them.
    pub n: usize,
    /// Number of those recorded.
    pub of: usize,
}

/// A figure without an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The figure.
    pub figure: Metric,
    /// Estimate, or value in one trial or over all.
    pub value: f64,
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The figure.
    pub figure: Metric,
    /// Its value; of copies, their sum.
    pub value: f64,
    /// Its estimate; of copies, the median with the range.
    pub estimate: Estimate,
}

impl Measured {
    /// A figure with its estimate.
    #[must_use]
    pub fn new(figure: Metric, estimate: &Estimate) -> Self {
        Self { figure, value: estimate.estimate, estimate: *estimate }
    }
}

/// Something about a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfCell<T> {
    /// The cell.
    #[serde(flatten)]
    pub place: OwnedCellKey,
    /// Trials that it rests on or is about.
    #[serde(flatten)]
    pub trials: Trials,
    /// Statement about the cell.
    #[serde(flatten)]
    pub content: T,
}

impl<T> OfCell<T> {
    /// About the valid trials of a cell.
    #[must_use]
    pub fn new(cell: &Cell, content: T) -> Self {
        Self { place: cell.key().into(), trials: Trials { n: cell.valid, of: cell.places() }, content }
    }

    /// About the valid trials of a cell, in a comparison under these conditions: those may have factors that cannot touch the
    /// mode of the cell.
    #[must_use]
    pub fn under(at: Conditions<'_>, cell: &Cell, content: T) -> Self {
        Self { place: at.cell(cell.mode).into(), ..Self::new(cell, content) }
    }

    /// Sets the number of trials to that of an estimate, unless it rests on none.
    #[must_use]
    pub fn resting_on(mut self, estimate: &Estimate) -> Self {
        if estimate.n > 0 {
            self.trials.n = estimate.n;
        }
        self
    }
}

impl OfCell<Measured> {
    /// An estimate of a cell.
    #[must_use]
    pub fn measured(cell: &Cell, figure: Metric, estimate: &Estimate) -> Self {
        Self::new(cell, Measured::new(figure, estimate)).resting_on(estimate)
    }
}

/// A figure with its subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About<S, T> {
    /// The subject.
    pub subject: S,
    /// The figure.
    #[serde(flatten)]
    pub figure: T,
}

/// CPU or memory of a component of a cell.
pub type Usage = OfCell<About<String, Measured>>;

impl<S> OfCell<About<S, Measured>> {
    /// An estimate of a part of a cell.
    #[must_use]
    pub fn about(cell: &Cell, subject: S, figure: Metric, estimate: &Estimate) -> Self {
        Self::new(cell, About { subject, figure: Measured::new(figure, estimate) }).resting_on(estimate)
    }
}

/// A figure with a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged<T> {
    /// The figure.
    #[serde(flatten)]
    pub figure: T,
    /// The verdict.
    pub verdict: FindingVerdict,
}

/// No content beside its cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Empty {}

/// Difference of a figure to another mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The other mode.
    pub against: Mode,
    /// The difference.
    #[serde(rename = "estimate")]
    pub difference: Estimate,
    /// Verdict on it.
    pub verdict: FindingVerdict,
}
