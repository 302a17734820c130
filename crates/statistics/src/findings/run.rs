//! The run that findings are derived from.

use super::graph::Greatest;
use super::resources::CpuScaling;
use crate::trials::{TrialsByCell, are_enough};
use experiment::Experiment;
use results::{Cell, Conditions, Factors, Figure, LoadPoint, Mode, Summary};

/// Preferred rate for the headline: that of the published figures.
const REFERENCE_RATE: f64 = 1000.0;

/// Preferred number of clients for findings: the study of egress paths gives response times for it.
const REFERENCE_CLIENTS: f64 = 20.0;

/// Distance of a load from the reference load.
pub fn distance_from_reference(load: &LoadPoint) -> f64 {
    match (load.rate, load.clients) {
        (Some(rate), _) => (rate - REFERENCE_RATE).abs(),
        (None, clients) => (clients.unwrap_or(0) as f64 - REFERENCE_CLIENTS).abs(),
    }
}

/// The first of the items with the least distance.
pub(super) fn nearest<T>(items: impl IntoIterator<Item = T>, distance: impl Fn(&T) -> f64) -> Option<T> {
    items.into_iter().min_by(|one, other| distance(one).total_cmp(&distance(other)))
}

/// The item under which the most modes were measured; of equals, the one whose load is nearest to the reference.
pub(super) fn most_measured<T>(
    items: impl IntoIterator<Item = T>,
    measured: impl Fn(&T) -> usize,
    load: impl Fn(&T) -> &LoadPoint,
) -> Option<T> {
    items.into_iter().min_by(|one, other| {
        let [nearness, of_other] = [one, other].map(|item| distance_from_reference(load(item)));
        measured(other).cmp(&measured(one)).then(nearness.total_cmp(&of_other))
    })
}

/// Experiment, estimates and trials.
pub(crate) struct Run<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) summary: &'a Summary,
    pub(crate) trials: &'a TrialsByCell<'a>,
    /// The greatest driver, call and service of each cell, with their verdicts.
    pub(crate) greatest: &'a [Greatest],
    /// The proxies' CPU at the highest rate against the lowest, by mode, with their verdicts.
    pub(crate) cpu_scalings: &'a [CpuScaling],
}

impl<'a> Run<'a> {
    /// The cells of a mode that have a valid trial.
    pub(crate) fn measured(&self, mode: Mode) -> impl Iterator<Item = &'a Cell> {
        self.summary.cells.iter().filter(move |cell| cell.mode == mode && cell.valid > 0)
    }

    /// The modes with proxies on the path; the headline's mode comes first.
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

    /// The measured cell of a mode whose load is at or nearest to the reference rate; in a closed loop,
    /// nearest to the reference number of clients. Cells that can be compared with their baseline come first.
    pub(crate) fn reference_cell(&self, mode: Mode) -> Option<&'a Cell> {
        let cells: Vec<&Cell> = self.measured(mode).collect();
        let comparable: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.added_us.is_some()).collect();
        let cells = if comparable.is_empty() { cells } else { comparable };
        nearest(cells, |cell| distance_from_reference(&cell.load))
    }

    /// Conditions that these cells share. A cell is measured once for all values of the factors that cannot touch it, and is
    /// part of the conditions of each value.
    pub(super) fn conditions(&self, is_meant: impl Fn(&Cell) -> bool) -> Vec<(Factors, LoadPoint)> {
        let mut all: Vec<(Factors, LoadPoint)> = Vec::new();
        for mode in Mode::ALL {
            let cells = self.summary.cells.iter().filter(|cell| cell.mode == mode && is_meant(cell));
            let own: Vec<Conditions<'_>> = cells.map(Cell::conditions).collect();
            let mut joined = Vec::new();
            for (factors, load) in &all {
                let at = Conditions { factors, load };
                let before = joined.len();
                joined.extend(own.iter().filter_map(|own| at.joined(*own)));
                if joined.len() == before {
                    joined.push((factors.clone(), load.clone()));
                }
            }
            let is_known = |own: &Conditions<'_>, joined: &[(Factors, LoadPoint)]| {
                joined.iter().any(|(factors, load)| own.covers(Conditions { factors, load }))
            };
            let others = own.iter().filter(|own| !is_known(own, &joined));
            let others: Vec<_> = others.map(|own| (own.factors.clone(), own.load.clone())).collect();
            joined.extend(others);
            all = joined;
        }
        all
    }

    /// The reference cells of the modes with proxies.
    pub(crate) fn reference_cells(&self) -> impl Iterator<Item = &'a Cell> {
        self.modes_with_proxies().into_iter().filter_map(|mode| self.reference_cell(mode))
    }

    /// True if a percentile has enough events in every valid trial of a cell and, if it is compared, of its
    /// baseline under the same conditions.
    pub(crate) fn resolves(&self, cell: &Cell, percentile: Figure) -> bool {
        let enough = |mode| {
            let cell = self.trials.cell_under(cell.conditions(), mode);
            cell.is_none_or(|cell| are_enough(self.trials.events_beyond(cell, percentile)))
        };
        enough(cell.mode) && (cell.added_us.is_none() || cell.mode.floor().is_none_or(enough))
    }
}
