//! Figures of modes that noise of the machine keeps out of the estimates.

use super::run::{Run, distance_from_reference, nearest};
use results::finding::{OfCell, Trials, Value};
use results::{Cell, Finding, LoadPoint, Metric, Mode};

/// The main figure of each mode whose trials were disturbed, at the load nearest to the reference.
pub(super) fn disturbed(run: &Run<'_>) -> Vec<Finding> {
    let mut modes: Vec<Mode> = Vec::new();
    for cell in &run.summary.cells {
        if !modes.contains(&cell.mode) {
            modes.push(cell.mode);
        }
    }
    let of_mode = |mode: Mode| {
        let cells = run.summary.cells.iter().filter(|cell| cell.mode == mode).filter_map(of_cell);
        nearest(cells, |one| distance_from_reference(&one.place.load))
    };
    modes.into_iter().filter_map(of_mode).map(Finding::Disturbed).collect()
}

fn of_cell(cell: &Cell) -> Option<OfCell<Value>> {
    let disturbed = cell.disturbed.as_ref()?;
    let value = |figure: &Metric| {
        let known = disturbed.figures.get(figure.key())?;
        Some(Value { figure: *figure, value: known.value })
    };
    let value = main_figures(&cell.load).iter().find_map(value)?;
    let trials = Trials { n: disturbed.trials, of: cell.trials };
    Some(OfCell { trials, ..OfCell::new(cell, value) })
}

/// The main figure of a cell with this load, or what stands in for it.
fn main_figures(load: &LoadPoint) -> &'static [Metric] {
    if load.is_fleet() {
        &[Metric::ConvergenceP99Us, Metric::FirstConfigurationLastUs]
    } else if load.is_closed_loop() {
        &[Metric::RateCompleted, Metric::ResponseTimeP50Us]
    } else {
        &[Metric::ResponseTimeP50Us]
    }
}
