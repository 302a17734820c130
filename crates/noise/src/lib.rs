//! Variation of one figure between the trials of a run: a model over modes, loads and repeats.
//!
//! The logarithm of a figure in a trial is the sum of three terms: its cell, the repeat (the machine's
//! performance drifts), and noise of the trial. Cells of a run share a machine, so their variances borrow
//! from each other ([`mod@moderated`]); the variance of the repeats has nothing to borrow from. With two trials in
//! each cell none can show a spread of its own: they are pooled ([`mod@pooled`]). Figures:
//! docs/decisions/0001-intervals.md.
//!
//! [`interval`] has the intervals of one cell or two, [`student`] the distribution behind all. A crate of its own, since tests
//! simulate runs by the thousand: it is optimised there, and little else is.

pub mod interval;
mod moderated;
pub mod normal;
mod pooled;
pub mod student;

pub use moderated::{Place, Spread};

use moderated::{SampleVariance, dense, moderated};
use pooled::pooled;
use std::collections::BTreeMap;

/// A figure in the trials of a cell, by repeat.
pub type Values = BTreeMap<usize, f64>;

/// Minimum number of cells for the model: with two, effects of cells and of repeats cannot be separated.
const MIN_CELLS: usize = 3;
/// Cells with this many trials or fewer have one degree of freedom of their own.
const FEW: usize = 2;
/// Like [`interval::ALLOWANCE`], for at most [`FEW`] trials: their variances are pooled as if all cells were alike.
const ALLOWANCE_OF_FEW: f64 = 1.2;
/// Repeats of [`FEW`] trials differ if their variance exceeds that of trials by this factor.
const REPEATS_DIFFER: f64 = 4.0;
/// Rounds of fitting and reweighting: quieter cells say more about the repeats, and the repeats about the
/// cells.
const ROUNDS: usize = 2;
/// Passes of the fit; the first pass is already exact if no trial is missing.
const PASSES: usize = 20;
/// Minimum standard deviation as a fraction: finer than any figure of a trial is read.
const MIN_DEVIATION: f64 = 1e-4;

/// The noise of one figure.
#[derive(Clone, Debug, Default)]
pub struct Noise {
    /// Noise of each cell; `None` for cells left out of the model.
    trials: Vec<Option<Spread>>,
    /// Weight of each cell in the estimated effects of the repeats, 0 to 1.
    shares: Vec<f64>,
    /// Observed variance of the repeats' effects.
    repeats: Option<Spread>,
    /// The part of that variance that comes from the noise of the trials alone.
    repeats_by_trials: f64,
    /// True if no cell has more than [`FEW`] trials.
    is_few: bool,
}

impl Noise {
    /// Fits the cells of a run. Cells with a single value, or with a value that has no logarithm, are left
    /// out.
    pub fn new(cells: &[(Place, &Values)]) -> Self {
        let left_out = Self { trials: vec![None; cells.len()], ..Self::default() };
        let fits = |values: &Values| values.len() >= 2 && values.values().all(|value| *value > 0.0);
        let taken: Vec<usize> = (0..cells.len()).filter(|cell| fits(cells[*cell].1)).collect();
        if taken.len() < MIN_CELLS {
            return left_out;
        }
        let logarithms: Vec<Values> = taken
            .iter()
            .map(|cell| cells[*cell].1.iter().map(|(repeat, value)| (*repeat, value.ln())).collect())
            .collect();
        let places: Vec<Place> = taken.iter().map(|cell| cells[*cell].0).collect();
        let is_few = logarithms.iter().all(|values| values.len() <= FEW);
        let mut weights = vec![1.0; taken.len()];
        let mut spreads = Vec::new();
        let mut fit = Fit::new(&logarithms, &weights, is_few);
        for round in 0..=ROUNDS {
            let samples = fit.sample_variances(&places);
            spreads = if is_few { pooled(&samples) } else { moderated(&samples) };
            if round < ROUNDS {
                weights = spreads.iter().map(|spread| 1.0 / spread.variance).collect();
                fit = Fit::new(&logarithms, &weights, is_few);
            }
        }
        let mut noise = Self { shares: vec![0.0; cells.len()], repeats: fit.repeats(), is_few, ..left_out };
        noise.repeats_by_trials = fit.repeats_by_trials();
        for (position, cell) in taken.iter().enumerate() {
            noise.trials[*cell] = Some(spreads[position]);
            noise.shares[*cell] = fit.share(position);
        }
        noise
    }

    /// Noise of a cell's trials, without the effects of the repeats.
    pub fn of_trials(&self, cell: usize) -> Option<Spread> {
        self.trials[cell]
    }

    /// Factor of half-widths: see [`interval::ALLOWANCE`].
    pub fn allowance(&self) -> f64 {
        if self.is_few { ALLOWANCE_OF_FEW } else { interval::ALLOWANCE }
    }

    /// Factor of the standard error in tests. Variances of few trials are pooled whether or not the cells are alike,
    /// and tests would suffer from it as intervals would.
    pub fn allowance_of_tests(&self) -> f64 {
        if self.is_few { ALLOWANCE_OF_FEW } else { 1.0 }
    }

    /// Variance of the repeats' effects beyond what the trials' noise makes it look like.
    pub fn of_repeats(&self) -> Option<Spread> {
        self.repeats
            .map(|seen| Spread { variance: (seen.variance - self.repeats_by_trials).max(0.0), ..seen })
    }

    /// Both kinds of noise for a trial of a cell, in two independent parts: a weighted mean of all cells is
    /// independent of a cell's distance from it.
    pub fn of_cell(&self, cell: usize) -> Option<[Spread; 2]> {
        let trials = self.trials[cell]?;
        let own = Spread { variance: trials.variance * (1.0 - self.shares[cell]), ..trials };
        let seen = self.repeats?;
        // Two repeats may look alike by chance.
        let least = if self.is_few { self.repeats_by_trials } else { 0.0 };
        Some([own, Spread { variance: seen.variance.max(least), ..seen }])
    }
}

/// Cells and repeats fitted by weighted least squares.
struct Fit<'a> {
    cells: &'a [Values],
    weights: &'a [f64],
    means: Vec<f64>,
    /// Effect and total weight of each repeat.
    repeats: BTreeMap<usize, (f64, f64)>,
    is_few: bool,
    /// Fraction of the repeats' effects that residuals are free of.
    removed: f64,
}

impl<'a> Fit<'a> {
    fn new(cells: &'a [Values], weights: &'a [f64], is_few: bool) -> Self {
        let mut repeats: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (values, weight) in cells.iter().zip(weights) {
            values.keys().for_each(|repeat| repeats.entry(*repeat).or_default().1 += weight);
        }
        let means = vec![0.0; cells.len()];
        let mut fit = Self { cells, weights, means, repeats, is_few, removed: 1.0 };
        let complete = cells.iter().all(|values| values.len() == fit.repeats.len());
        for _ in 0..if complete { 1 } else { PASSES } {
            fit.improve();
        }
        if is_few {
            fit.removed = fit.beyond_chance();
        }
        fit
    }

    /// Fraction of the repeats' effects that cannot be the noise of trials (positive-part James-Stein). Repeats that
    /// differ by less are noise of trials, and a degree of freedom more.
    fn beyond_chance(&self) -> f64 {
        let (mut within, mut freedom) = (0.0, 0.0);
        for (cell, weight) in self.weights.iter().enumerate() {
            within += weight * self.residuals(cell).map(|(_, rest)| rest * rest).sum::<f64>();
            freedom += (self.cells[cell].len() as f64 - 1.0) * (1.0 - self.share(cell));
        }
        let between: f64 = self.repeats.values().map(|(effect, weight)| weight * effect * effect).sum();
        let between = between / (self.repeats.len() as f64 - 1.0);
        if between > 0.0 { (1.0 - REPEATS_DIFFER * within / freedom / between).max(0.0) } else { 0.0 }
    }

    fn improve(&mut self) {
        for (mean, values) in self.means.iter_mut().zip(self.cells) {
            let rest = values.iter().map(|(repeat, value)| value - self.repeats[repeat].0);
            *mean = rest.sum::<f64>() / values.len() as f64;
        }
        let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
        for ((values, mean), weight) in self.cells.iter().zip(&self.means).zip(self.weights) {
            for (repeat, value) in values {
                *sums.entry(*repeat).or_default() += weight * (value - mean);
            }
        }
        for (repeat, (effect, weight)) in &mut self.repeats {
            *effect = sums[repeat] / *weight;
        }
    }

    /// Residual of each value of a cell.
    fn residuals(&self, cell: usize) -> impl Iterator<Item = (usize, f64)> {
        let values = self.cells[cell].iter();
        let rest: Vec<(usize, f64)> =
            values.map(|(repeat, value)| (*repeat, value - self.removed * self.repeats[repeat].0)).collect();
        let mean = rest.iter().map(|(_, rest)| rest).sum::<f64>() / rest.len() as f64;
        rest.into_iter().map(move |(repeat, rest)| (repeat, rest - mean))
    }

    /// A cell's fraction of the weight of its repeats.
    fn share(&self, cell: usize) -> f64 {
        let repeats = self.cells[cell].keys().map(|repeat| self.weights[cell] / self.repeats[repeat].1);
        repeats.sum::<f64>() / self.cells[cell].len() as f64
    }

    fn sample_variances(&self, places: &[Place]) -> Vec<SampleVariance> {
        let groups = dense(places.iter().map(|place| place.mode));
        // Residuals of two repeats mirror each other: their correlation says nothing.
        let dependence = if self.is_few { 0.0 } else { self.dependence(&groups) };
        let removed = 1.0 - (1.0 - self.removed).powi(2);
        let size = |group: usize| groups.iter().filter(|other| **other == group).count() as f64;
        (0..self.cells.len())
            .map(|cell| {
                let others = size(groups[cell]) - 1.0;
                let share = removed * self.share(cell) * (1.0 + others * dependence);
                let freedom = (self.cells[cell].len() as f64 - 1.0) * (1.0 - share).max(0.05);
                let squares: f64 = self.residuals(cell).map(|(_, rest)| rest * rest).sum();
                SampleVariance {
                    place: places[cell],
                    variance: (squares / freedom).max(MIN_DEVIATION * MIN_DEVIATION),
                    freedom,
                    added_freedom: freedom / (1.0 + others * dependence * dependence),
                }
            })
            .collect()
    }

    /// Correlation of the residuals in the trials of one mode and repeat, which may share a deployment:
    /// variances of cells that vary together carry less information than they seem to.
    fn dependence(&self, groups: &[usize]) -> f64 {
        let mut sums: BTreeMap<(usize, usize), (f64, f64, f64)> = BTreeMap::new();
        for (cell, group) in groups.iter().enumerate() {
            let rest: Vec<(usize, f64)> = self.residuals(cell).collect();
            let scale = rest.iter().map(|(_, rest)| rest * rest).sum::<f64>() / rest.len() as f64;
            for (repeat, rest) in rest {
                let standard = rest / scale.sqrt().max(MIN_DEVIATION);
                let (sum, squares, count) = sums.entry((*group, repeat)).or_default();
                *sum += standard;
                *squares += standard * standard;
                *count += 1.0;
            }
        }
        let (mut products, mut squares, mut pairs) = (0.0, 0.0, 0.0);
        for (sum, square, count) in sums.values() {
            products += sum * sum - square;
            squares += (count - 1.0) * square;
            pairs += count * (count - 1.0) / 2.0;
        }
        // Removing the effects of the repeats leaves the residuals negatively correlated.
        let by_fit = 1.0 / (self.cells.len() as f64 - 1.0);
        let by_chance = 0.5 / f64::max(pairs, 1.0).sqrt();
        if squares > 0.0 { (products / squares + by_fit - by_chance).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Observed variance of the repeats' effects.
    fn repeats(&self) -> Option<Spread> {
        let count = self.repeats.len() as f64;
        let mean = self.repeats.values().map(|(effect, _)| effect).sum::<f64>() / count;
        let squares: f64 = self.repeats.values().map(|(effect, _)| (effect - mean).powi(2)).sum();
        (count > 1.0).then(|| Spread::own(squares / (count - 1.0), count - 1.0))
    }

    /// Mean variance of the repeats' effects that comes from the noise of trials.
    fn repeats_by_trials(&self) -> f64 {
        self.repeats.values().map(|(_, weight)| 1.0 / weight).sum::<f64>() / self.repeats.len() as f64
    }
}
