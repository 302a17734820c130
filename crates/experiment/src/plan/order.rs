//! The order of the trials of a repeat.
//!
//! Cells are shuffled, but those that share values of expensive factors stay together: the control plane's
//! version varies slowest, then the size of the mesh, then the topology. The order comes from the seed by SplitMix64 and a Fisher-Yates shuffle, both written out
//! here: a seed gives the same order for ever, whatever becomes of random number libraries.

use crate::definition::Experiment;
use std::collections::BTreeMap;

/// What the change of a factor from trial to trial costs: 0 for nothing beyond a trial's own bring-up.
pub(crate) fn change_cost(key: &str) -> u8 {
    match key {
        // Another control plane starts, with an empty mesh.
        "components.istio" | "components.istiod" | "istio.telemetry" => MAX_CHANGE_COST,
        // Objects are written and removed, which takes seconds.
        _ if key.starts_with("istio.surroundings.") => 2,
        _ if key.starts_with("topology.") => 1,
        "ingress.domains" | "ingress.paths" | "ingress.credentials" => 1,
        _ => 0,
    }
}

const MAX_CHANGE_COST: u8 = 3;

/// A cell by its positions in the experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPosition {
    pub(super) combination: usize,
    pub(super) level: usize,
    pub(super) mode: usize,
}

/// Every cell of a repeat once.
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

/// Shuffles blocks of cells with the same values of all factors of this cost, and then each block by the next lower cost.
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
    // A single block draws nothing: its order is that of an experiment without such factors.
    shuffle(&mut blocks, random);
    blocks.into_iter().flat_map(|block| shuffled(experiment, block, cost - 1, random)).collect()
}

/// Positions of the values that a combination has of the factors of this cost.
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

/// Fisher-Yates: every order is equally likely.
pub(super) fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014); constants as in the reference
/// code of Vigna (<https://prng.di.unimi.it/splitmix64.c>).
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number under the bound, each as likely. The bias of the multiplication is under 2⁻⁵⁰ for any number of cells.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
