//! Trials of a run by cell, and which of them are valid.

use experiment::schema::{CellKey, LoadResult, TrialRecord};
use std::collections::HashMap;

/// Trials of a run, found by cell.
#[derive(Clone, Debug)]
pub struct TrialsByCell<'a> {
    all: &'a [TrialRecord],
    positions: HashMap<CellKey<'a>, usize>,
    cells: Vec<Vec<&'a TrialRecord>>,
}

impl<'a> TrialsByCell<'a> {
    /// Groups trials in one pass.
    #[must_use]
    pub fn new(all: &'a [TrialRecord]) -> Self {
        let (mut positions, mut cells) = (HashMap::new(), Vec::new());
        for trial in all {
            let position = *positions.entry(trial.cell()).or_insert_with(|| {
                cells.push(Vec::new());
                cells.len() - 1
            });
            cells[position].push(trial);
        }
        Self { all, positions, cells }
    }

    /// Every trial, in the order of execution.
    #[must_use]
    pub fn all(&self) -> &'a [TrialRecord] {
        self.all
    }

    /// Trials of a cell, in the order of execution.
    #[must_use]
    pub fn of(&self, cell: CellKey<'_>) -> &[&'a TrialRecord] {
        self.position(cell).map_or(&[], |position| &self.cells[position])
    }

    fn position(&self, cell: CellKey<'_>) -> Option<usize> {
        self.positions.get(&cell).copied()
    }

    /// Results of the valid trials of a cell.
    pub(crate) fn valid_results(&self, cell: CellKey<'_>) -> impl Iterator<Item = &'a LoadResult> {
        let valid = self.of(cell).iter().filter(|trial| is_valid(trial));
        valid.filter_map(|trial| trial.result.as_ref())
    }
}

/// Whether a trial's figures may enter estimates: its verdict says so and there are responses.
pub(crate) fn is_valid(trial: &TrialRecord) -> bool {
    trial.verdict.valid && trial.result.as_ref().is_some_and(|result| result.response_time_us.count > 0)
}

/// Kind of a reason: the text before its colon.
pub(crate) fn kind_of(reason: &str) -> &str {
    reason.split(':').next().unwrap_or_default().trim()
}

/// Kind of the first reason why a trial is not valid.
pub(crate) fn reason_kind(trial: &TrialRecord) -> &str {
    match trial.verdict.reasons.first() {
        Some(reason) => kind_of(reason),
        None if trial.result.is_none() => "no result",
        None => "no responses",
    }
}
