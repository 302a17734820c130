//! Order of the trials of a repeat.
//!
//! Cells are shuffled, but cells with the same values of expensive factors stay together: the control plane's
//! version varies slowest, then the size of the mesh, then the topology. The order comes from the seed.

use crate::definition::Experiment;
use results::random::{SplitMix64, shuffle};
use std::collections::BTreeMap;

/// Cost of changing a factor between trials; 0 if it costs nothing beyond a trial's own bring-up.
pub(crate) fn change_cost(key: &str) -> u8 {
    match key {
        // Starts another control plane with an empty mesh.
        "components.istio" | "components.istiod" | "istio.telemetry" => MAX_CHANGE_COST,
        // Writes and removes objects, which takes seconds.
        _ if key.starts_with("istio.background-services.") => 2,
        _ if key.starts_with("topology.") => 1,
        "ingress.domains" | "ingress.paths" | "ingress.credentials" => 1,
        _ => 0,
    }
}

const MAX_CHANGE_COST: u8 = 3;

/// Cell as indices into the experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPosition {
    pub(super) combination: usize,
    pub(super) level: usize,
    pub(super) mode: usize,
}

/// Every cell of a repeat once, in random order.
pub(super) fn ordered(experiment: &Experiment, random: &mut SplitMix64) -> Vec<CellPosition> {
    let mut cells = Vec::new();
    for combination in 0..experiment.combinations.len().max(1) {
        for level in 0..experiment.load.levels.count() {
            let modes = 0..experiment.modes.len();
            cells.extend(modes.map(|mode| CellPosition { combination, level, mode }));
        }
    }
    shuffled(experiment, cells, MAX_CHANGE_COST, random)
}

/// Shuffles blocks of cells with equal values of all factors of this cost, then each block by the next lower
/// cost.
fn shuffled(
    experiment: &Experiment,
    mut cells: Vec<CellPosition>,
    cost: u8,
    random: &mut SplitMix64,
) -> Vec<CellPosition> {
    if cost == 0 {
        shuffle(&mut cells, random);
        return cells;
    }
    let mut blocks: BTreeMap<Vec<usize>, Vec<CellPosition>> = BTreeMap::new();
    for cell in cells {
        blocks.entry(values_of_cost(experiment, cell.combination, cost)).or_default().push(cell);
    }
    let mut blocks: Vec<Vec<CellPosition>> = blocks.into_values().collect();
    // A single block draws no random number: the order is that of an experiment without such factors.
    shuffle(&mut blocks, random);
    blocks.into_iter().flat_map(|block| shuffled(experiment, block, cost - 1, random)).collect()
}

/// Indices of a combination's values of the factors of this cost.
fn values_of_cost(experiment: &Experiment, combination: usize, cost: u8) -> Vec<usize> {
    let mut rest = combination;
    let mut positions = Vec::new();
    for factor in experiment.factors.iter().rev() {
        if change_cost(&factor.key) == cost {
            positions.push(rest % factor.values.len());
        }
        rest /= factor.values.len();
    }
    positions
}
