//! Variances of cells that borrow from each other: empirical Bayes for few replicates, as in G. K. Smyth,
//! "Linear models and empirical Bayes methods" (2004). Two levels are used: cells of a group resemble each
//! other, and groups resemble each other.
//!
//! A cell's variance is drawn around its group's (scaled inverse chi-squared, of `FREEDOMS` degrees), a
//! group's around the run's (Student's t of the logarithm, of `GROUP_SPREADS`). Smyth estimates the degrees
//! and uses them as if they were known. With a handful of cells that claims too much, so both are integrated
//! over a grid. The result for a cell is a mixture, and the t distribution with the same first two moments of
//! the precision replaces it. Cells are grouped by mode and by conditions, and the wider result is used.

use crate::student;
use statrs::function::gamma::ln_gamma;
use std::collections::BTreeMap;

/// The variance of one observation, with the degrees of freedom of its t distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Variance, in the square of the values' unit.
    pub variance: f64,
    /// Degrees of freedom.
    pub freedom: f64,
    /// Fraction of the degrees of freedom that come from cells that share them.
    pub shared: f64,
}

impl Spread {
    /// A variance that shares nothing with others.
    pub fn own(variance: f64, freedom: f64) -> Self {
        Self { variance, freedom, shared: 0.0 }
    }

    /// Half-width of the interval of one observation.
    fn reach(self) -> f64 {
        student::t_95(self.freedom) * self.variance.sqrt()
    }

    fn wider(self, other: Self) -> Self {
        if other.reach() > self.reach() { other } else { self }
    }
}

/// Position of a cell in its run. Cells of the same mode are likely to be alike, and so are cells under the
/// same conditions: near saturation every mode varies more.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Place {
    /// Number of its mode.
    pub mode: usize,
    /// Number of its combination of factors and load.
    pub conditions: usize,
}

/// A sample variance.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleVariance {
    pub place: Place,
    pub variance: f64,
    pub freedom: f64,
    /// Degrees of freedom that it adds to the other cells of its mode, which may vary together.
    pub added_freedom: f64,
}

/// Degrees of freedom that the cells of a group may contribute to each other: from variances that differ
/// threefold to equal ones.
const FREEDOMS: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 64.0];
/// Scales of the logarithm of the variance among groups.
const GROUP_SPREADS: [f64; 3] = [0.5, 1.2, 3.0];
/// Step of the grid's log variances, and how far the grid extends beyond the samples.
const STEP: f64 = 0.5;
const MARGIN: f64 = 2.0;
const MAX_LEVELS: usize = 40;
/// The only cell of its mode and of its conditions may be noisier than all others. Its own variance is then used, with
/// this factor on its degrees of freedom. The allowance on half-widths (`interval::ALLOWANCE`) pays for it.
const ALONE: f64 = 1.1;
/// A grouping is dropped if the samples are this many times likelier under the other one.
const REFUTED: f64 = 20.0;

/// Each cell's variance given all samples: the widest of its estimates by mode, by conditions, and by
/// conditions with the modes scaled to one level.
pub(super) fn moderated(samples: &[SampleVariance]) -> Vec<Spread> {
    let modes = dense(samples.iter().map(|sample| sample.place.mode));
    let conditions = dense(samples.iter().map(|sample| sample.place.conditions));
    // A single group holds no information about which cells are alike.
    let is_one = |groups: &[usize]| groups.iter().all(|group| *group == 0);
    let by_mode = borrowed(samples, &modes);
    if is_one(&conditions) {
        return by_mode.spreads;
    }
    let by_conditions = borrowed(samples, &conditions);
    if is_one(&modes) {
        return by_conditions.spreads;
    }
    let scaled = by_scaled_conditions(samples, &conditions, &scales(&by_mode.spreads, &modes));
    let best = by_mode.evidence.max(by_conditions.evidence);
    let tenable = [by_mode, by_conditions].into_iter().filter(|by| by.evidence > best - REFUTED.ln());
    tenable.fold(scaled, |widest, by| {
        widest.into_iter().zip(by.spreads).map(|(one, other)| one.wider(other)).collect()
    })
}

/// Scale of each cell: the geometric mean of its mode's variances.
fn scales(spreads: &[Spread], modes: &[usize]) -> Vec<f64> {
    let of_mode = |mode: usize| {
        let own = spreads.iter().zip(modes).filter(|(_, of)| **of == mode);
        let (sum, count) =
            own.fold((0.0, 0.0), |(sum, count), (spread, _)| (sum + spread.variance.ln(), count + 1.0));
        f64::exp(sum / count)
    };
    modes.iter().map(|mode| of_mode(*mode)).collect()
}

fn by_scaled_conditions(samples: &[SampleVariance], conditions: &[usize], scales: &[f64]) -> Vec<Spread> {
    let scaled = samples.iter().zip(scales);
    let scaled =
        scaled.map(|(sample, scale)| SampleVariance { variance: sample.variance / scale, ..*sample });
    let spreads = borrowed(&scaled.collect::<Vec<_>>(), conditions).spreads.into_iter().zip(scales);
    spreads.map(|(spread, scale)| Spread { variance: spread.variance * scale, ..spread }).collect()
}

/// Groups numbered without gaps.
pub(super) fn dense(groups: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut numbers = BTreeMap::new();
    groups
        .map(|group| {
            let next = numbers.len();
            *numbers.entry(group).or_insert(next)
        })
        .collect()
}

struct Borrowed {
    spreads: Vec<Spread>,
    /// Log likelihood of the samples under this grouping.
    evidence: f64,
}

fn borrowed(samples: &[SampleVariance], groups: &[usize]) -> Borrowed {
    let Grouped { precisions, evidence } = Grouped::new(samples, groups);
    let cells = || samples.iter().zip(groups);
    let spread = |((sample, group), precision): ((&SampleVariance, &usize), &Precision)| {
        let borrowed = precision.spread(sample.freedom);
        let own = Spread::own(sample.variance, sample.freedom * ALONE);
        let alike = cells().filter(|(other, of)| *of == group || other.place.mode == sample.place.mode);
        if alike.count() == 1 { borrowed.wider(own) } else { borrowed }
    };
    Borrowed { spreads: cells().zip(&precisions).map(spread).collect(), evidence }
}

/// Precision of each cell if cells of a group are alike.
struct Grouped {
    precisions: Vec<Precision>,
    /// Log likelihood of the samples under this grouping.
    evidence: f64,
}

impl Grouped {
    fn new(samples: &[SampleVariance], groups: &[usize]) -> Self {
        let levels = levels(samples);
        let (likelihoods, factors) = likelihoods(samples, groups, &levels);
        let (weights, evidence) = group_weights(&likelihoods, &levels);
        let cells = samples.iter().zip(groups);
        let precisions = cells.map(|(sample, group)| Precision::new(sample, &levels, &weights[*group]));
        Self { precisions: precisions.collect(), evidence: evidence.ln() + factors }
    }
}

/// A variance that a group may have.
struct Level {
    logarithm: f64,
    variance: f64,
}

fn levels(samples: &[SampleVariance]) -> Vec<Level> {
    let logarithms = || samples.iter().map(|sample| sample.variance.ln());
    let low = logarithms().fold(f64::INFINITY, f64::min) - MARGIN;
    let high = logarithms().fold(f64::NEG_INFINITY, f64::max) + MARGIN;
    let count = (((high - low) / STEP).ceil() as usize + 1).clamp(2, MAX_LEVELS);
    let logarithms = (0..count).map(|level| low + (high - low) * level as f64 / (count - 1) as f64);
    logarithms.map(|logarithm| Level { logarithm, variance: logarithm.exp() }).collect()
}

/// Likelihoods or weights per group, by degrees of freedom and level.
type ByGroup = Vec<Vec<Vec<f64>>>;

/// Likelihood of each group's sample variances, up to a factor, and the logarithm of the product of these
/// factors.
fn likelihoods(samples: &[SampleVariance], groups: &[usize], levels: &[Level]) -> (ByGroup, f64) {
    let count = groups.iter().map(|group| group + 1).max().unwrap_or(0);
    let mut logarithms = vec![vec![vec![0.0; levels.len()]; FREEDOMS.len()]; count];
    for (sample, group) in samples.iter().zip(groups) {
        for (prior, of_freedom) in FREEDOMS.iter().zip(&mut logarithms[*group]) {
            let half = f64::midpoint(sample.added_freedom, *prior);
            let constant = ln_gamma(half) - ln_gamma(prior / 2.0)
                + sample.added_freedom / 2.0 * (sample.added_freedom / prior).ln();
            for (level, sum) in levels.iter().zip(of_freedom) {
                let ratio = sample.added_freedom * sample.variance / (prior * level.variance);
                *sum += constant - sample.added_freedom / 2.0 * level.logarithm - half * ratio.ln_1p();
            }
        }
    }
    let mut factors = 0.0;
    for group in &mut logarithms {
        let greatest = group.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        group.iter_mut().flatten().for_each(|logarithm| *logarithm = (*logarithm - greatest).exp());
        factors += greatest;
    }
    (logarithms, factors)
}

/// Posterior weights of each group given the other groups, and the likelihood of all samples.
fn group_weights(likelihoods: &[Vec<Vec<f64>>], levels: &[Level]) -> (ByGroup, f64) {
    let mut weights = vec![vec![vec![0.0; levels.len()]; FREEDOMS.len()]; likelihoods.len()];
    let mut evidence = 0.0;
    for spread in GROUP_SPREADS {
        let kernel = kernel(levels, spread);
        for freedom in 0..FREEDOMS.len() {
            // Likelihood of each group around each level of the run.
            let marginals: Vec<Vec<f64>> = likelihoods
                .iter()
                .map(|group| kernel.iter().map(|around| dot(around, &group[freedom])).collect())
                .collect();
            for (run_level, around) in kernel.iter().enumerate() {
                let all: f64 = marginals.iter().map(|group| group[run_level]).product();
                evidence += all;
                for (group, likelihood) in likelihoods.iter().enumerate() {
                    let others = all / marginals[group][run_level].max(f64::MIN_POSITIVE);
                    add_products(&mut weights[group][freedom], others, around, &likelihood[freedom]);
                }
            }
        }
    }
    (weights, evidence)
}

/// Weights of all levels around each level: Student's t with three degrees of freedom, normalised to 1.
fn kernel(levels: &[Level], spread: f64) -> Vec<Vec<f64>> {
    let around = |center: &Level| {
        let near =
            |level: &Level| (1.0 + ((level.logarithm - center.logarithm) / spread).powi(2) / 3.0).powi(-2);
        let near: Vec<f64> = levels.iter().map(near).collect();
        let sum: f64 = near.iter().sum();
        near.into_iter().map(|weight| weight / sum).collect()
    };
    levels.iter().map(around).collect()
}

// Much of the time of a dry run is spent in the two loops below. They go by index, which is faster than a chain of iterators where
// nothing is optimised, as in tests. Their order is part of the result: another one changes estimates in the last bit.

fn dot(one: &[f64], other: &[f64]) -> f64 {
    let (mut sum, mut index) = (0.0, 0);
    while index < one.len() {
        sum += one[index] * other[index];
        index += 1;
    }
    sum
}

/// Adds the products of a factor and two rows to the sums of a row.
fn add_products(sums: &mut [f64], factor: f64, one: &[f64], other: &[f64]) {
    let mut index = 0;
    while index < sums.len() {
        sums[index] += factor * one[index] * other[index];
        index += 1;
    }
}

/// The first two moments of a cell's precision, a mixture of gamma variables.
#[derive(Clone, Copy, Debug)]
struct Precision {
    mean: f64,
    square: f64,
}

impl Precision {
    fn new(sample: &SampleVariance, levels: &[Level], weights: &[Vec<f64>]) -> Self {
        let (mut sum, mut mean, mut square) = (0.0, 0.0, 0.0);
        for (prior, of_freedom) in FREEDOMS.iter().zip(weights) {
            for (level, weight) in levels.iter().zip(of_freedom) {
                let shape = f64::midpoint(*prior, sample.added_freedom);
                let rate = f64::midpoint(prior * level.variance, sample.added_freedom * sample.variance);
                let precision = shape / rate;
                sum += weight;
                mean += weight * precision;
                square += weight * precision * (shape + 1.0) / rate;
            }
        }
        Self { mean: mean / sum, square: square / sum }
    }

    /// Approximates the mixture by a single gamma variable with the same moments.
    fn spread(self, least_freedom: f64) -> Spread {
        let spread = (self.square / (self.mean * self.mean) - 1.0).max(1e-6);
        Spread::own(1.0 / self.mean, (2.0 / spread).max(least_freedom))
    }
}
