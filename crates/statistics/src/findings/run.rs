//! A run, as findings look at it.

use crate::trials::TrialsByCell;
use experiment::objective::SAMPLES_BEYOND_A_PERCENTILE;
use experiment::schema::{Cell, CellKey, LoadPoint, Summary};
use experiment::{Experiment, Mode};

/// The rate of the headline where the run has it: that of the published figures.
const REFERENCE_RATE: f64 = 1000.0;

/// The clients that findings speak of where the run has them: those for which the study of egress paths gives response
/// times.
const REFERENCE_CLIENTS: f64 = 20.0;

/// Distance of a load from the one that findings speak of.
pub fn distance_from_reference(load: &LoadPoint) -> f64 {
    match (load.rate, load.clients) {
        (Some(rate), _) => (rate - REFERENCE_RATE).abs(),
        (None, clients) => (clients.unwrap_or(0) as f64 - REFERENCE_CLIENTS).abs(),
    }
}

/// Experiment, estimates and trials.
pub(crate) struct Run<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) summary: &'a Summary,
    pub(crate) trials: &'a TrialsByCell<'a>,
}

impl<'a> Run<'a> {
    /// The cells of a mode that have a valid trial.
    pub(crate) fn measured(&self, mode: Mode) -> impl Iterator<Item = &'a Cell> {
        self.summary.cells.iter().filter(move |cell| cell.mode == mode && cell.valid > 0)
    }

    /// The modes with proxies on the path, the one that the headline is about first.
    pub(crate) fn modes_with_proxies(&self) -> Vec<Mode> {
        let mut modes: Vec<Mode> = Vec::new();
        for cell in &self.summary.cells {
            if cell.mode.floor().is_some() && !modes.contains(&cell.mode) {
                modes.push(cell.mode);
            }
        }
        modes.sort_by_key(|mode| (*mode != Mode::Sidecar, *mode));
        modes
    }

    /// The measured cell of a mode whose load is the reference rate, or nearest to it; in a closed loop the one
    /// nearest to the reference number of clients.
    /// Cells that can be compared with their floor go before others.
    pub(crate) fn reference_cell(&self, mode: Mode) -> Option<&'a Cell> {
        let cells: Vec<&Cell> = self.measured(mode).collect();
        let comparable: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.added_us.is_some()).collect();
        let cells = if comparable.is_empty() { cells } else { comparable };
        let distance = |cell: &Cell| distance_from_reference(&cell.load);
        cells.into_iter().min_by(|one, other| distance(one).total_cmp(&distance(other)))
    }

    /// The fewest requests that lie beyond a percentile (0 to 100) in any valid trial of a cell.
    pub(crate) fn samples_beyond(&self, cell: CellKey<'_>, percentile: f64) -> f64 {
        self.trials
            .valid_results(cell)
            .map(|result| result.response_time_us.count as f64 * (1.0 - percentile / 100.0))
            .fold(f64::INFINITY, f64::min)
    }

    /// Whether a percentile rests on enough requests in every valid trial of a cell and, where it is compared, of its
    /// floor under the same conditions.
    pub(crate) fn resolves(&self, cell: &Cell, percentile: f64) -> bool {
        // The fraction beyond a percentile is not exact in binary: a count of exactly ten must do.
        let enough = |mode| {
            self.samples_beyond(cell.conditions().cell(mode), percentile)
                >= SAMPLES_BEYOND_A_PERCENTILE - 1e-6
        };
        enough(cell.mode) && (cell.added_us.is_none() || cell.mode.floor().is_none_or(enough))
    }
}
