//! Programs of the mesh that differ between cells.

use crate::trials::{TrialsByCell, versions};
use results::{Cell, CellKey, ComponentVersion};

/// Writes into each cell the programs that not all cells ran.
pub(super) fn note_differing(cells: &mut [Cell], trials: &TrialsByCell<'_>) {
    let all: Vec<Vec<&ComponentVersion>> = cells.iter().map(|cell| of_cell(cell.key(), trials)).collect();
    let measured: Vec<&Vec<&ComponentVersion>> = all.iter().filter(|versions| !versions.is_empty()).collect();
    let differs = |version: &&&ComponentVersion| {
        // A mode without this component does not affect whether its versions differ.
        let mut others = measured.iter().flat_map(|versions| versions.iter());
        others.any(|other| other.name == version.name && other != *version)
    };
    let differing: Vec<Vec<ComponentVersion>> =
        all.iter().map(|versions| versions.iter().filter(differs).copied().cloned().collect()).collect();
    for (cell, versions) in cells.iter_mut().zip(differing) {
        cell.versions = versions;
    }
}

/// The distinct versions that a cell ran.
fn of_cell<'a>(cell: CellKey<'_>, trials: &TrialsByCell<'a>) -> Vec<&'a ComponentVersion> {
    versions(trials.of(cell).iter().copied())
}
