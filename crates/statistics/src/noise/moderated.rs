//! Variances of cells that borrow from each other: empirical Bayes for few replicates, as in G. K. Smyth, "Linear models and
//! empirical Bayes methods" (2004), with two levels: cells of a mode resemble each other, and modes do.
//!
//! A cell's variance is drawn around its mode's (scaled inverse chi-squared, of `FREEDOMS` degrees), a mode's around the
//! run's (Student's t of the logarithm, of `MODE_SPREADS`). Smyth estimates the degrees and uses them as if they were known; with a handful of cells that
//! claims too much, so both are integrated over a grid. What results for a cell is a mixture, of which the first two
//! moments of the precision are kept: the t distribution with them.

use statrs::function::gamma::ln_gamma;

/// The variance of one observation, and how well it is known: degrees of freedom of the t distribution that goes with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub variance: f64,
    pub freedom: f64,
}

/// A sample variance.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleVariance {
    /// Cells of a group (a mode) are likelier to be alike.
    pub group: usize,
    pub variance: f64,
    pub freedom: f64,
}

/// Degrees of freedom that the cells of a mode may be worth to each other: from variances that differ threefold to equal ones.
const FREEDOMS: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 64.0];
/// Scales of the logarithm of the variance among modes.
const MODE_SPREADS: [f64; 3] = [0.5, 1.2, 3.0];
/// Distance of the grid's variances, as a logarithm, and how far the grid reaches beyond the samples.
const STEP: f64 = 0.5;
const MARGIN: f64 = 2.0;
const MAX_LEVELS: usize = 40;

/// What each cell's variance is, in the light of all.
pub(super) fn moderated(samples: &[SampleVariance]) -> Vec<Spread> {
    let levels = levels(samples);
    let groups = samples.iter().map(|sample| sample.group + 1).max().unwrap_or(0);
    let likelihoods = likelihoods(samples, &levels, groups);
    let weights = group_weights(&likelihoods, &levels);
    let alone = |group: usize| samples.iter().filter(|sample| sample.group == group).count() == 1;
    let spread = |sample: &SampleVariance| {
        let borrowed = posterior(sample, &levels, &weights[sample.group]);
        let least = if alone(sample.group) { sample.variance } else { 0.0 };
        Spread { variance: borrowed.variance.max(least), ..borrowed }
    };
    samples.iter().map(spread).collect()
}

/// Logarithms of the variances that a mode may have.
fn levels(samples: &[SampleVariance]) -> Vec<f64> {
    let logarithms = || samples.iter().map(|sample| sample.variance.ln());
    let low = logarithms().fold(f64::INFINITY, f64::min) - MARGIN;
    let high = logarithms().fold(f64::NEG_INFINITY, f64::max) + MARGIN;
    let count = (((high - low) / STEP).ceil() as usize + 1).clamp(2, MAX_LEVELS);
    (0..count).map(|level| low + (high - low) * level as f64 / (count - 1) as f64).collect()
}

/// Of each group, by degrees of freedom and level: how likely its sample variances are, up to a factor.
fn likelihoods(samples: &[SampleVariance], levels: &[f64], groups: usize) -> Vec<Vec<Vec<f64>>> {
    let mut logarithms = vec![vec![vec![0.0; levels.len()]; FREEDOMS.len()]; groups];
    for sample in samples {
        for (prior, of_freedom) in FREEDOMS.iter().zip(&mut logarithms[sample.group]) {
            let half = f64::midpoint(sample.freedom, *prior);
            let constant =
                ln_gamma(half) - ln_gamma(prior / 2.0) + sample.freedom / 2.0 * (sample.freedom / prior).ln();
            for (level, sum) in levels.iter().zip(of_freedom) {
                let ratio = sample.freedom * sample.variance / (prior * level.exp());
                *sum += constant - sample.freedom / 2.0 * level - half * ratio.ln_1p();
            }
        }
    }
    for group in &mut logarithms {
        let greatest = group.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        group.iter_mut().flatten().for_each(|logarithm| *logarithm = (*logarithm - greatest).exp());
    }
    logarithms
}

/// Of each group, by degrees of freedom and level: the posterior weight, in the light of the other groups.
fn group_weights(likelihoods: &[Vec<Vec<f64>>], levels: &[f64]) -> Vec<Vec<Vec<f64>>> {
    let mut weights = vec![vec![vec![0.0; levels.len()]; FREEDOMS.len()]; likelihoods.len()];
    for spread in MODE_SPREADS {
        let kernel = kernel(levels, spread);
        for freedom in 0..FREEDOMS.len() {
            // Of each group around each level of the run.
            let marginals: Vec<Vec<f64>> = likelihoods
                .iter()
                .map(|group| kernel.iter().map(|around| dot(around, &group[freedom])).collect())
                .collect();
            for (run_level, around) in kernel.iter().enumerate() {
                let all: f64 = marginals.iter().map(|group| group[run_level]).product();
                for (group, likelihood) in likelihoods.iter().enumerate() {
                    let others = all / marginals[group][run_level].max(f64::MIN_POSITIVE);
                    let of_level = around.iter().zip(&likelihood[freedom]);
                    for (weight, (near, likely)) in weights[group][freedom].iter_mut().zip(of_level) {
                        *weight += others * near * likely;
                    }
                }
            }
        }
    }
    weights
}

/// Around each level, the weights of all levels: Student's t of three degrees of freedom, and 1 in all.
fn kernel(levels: &[f64], spread: f64) -> Vec<Vec<f64>> {
    let around = |center: &f64| {
        let near: Vec<f64> =
            levels.iter().map(|level| (1.0 + ((level - center) / spread).powi(2) / 3.0).powi(-2)).collect();
        let sum: f64 = near.iter().sum();
        near.into_iter().map(|weight| weight / sum).collect()
    };
    levels.iter().map(around).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// The precision of a cell is a mixture of gamma variables; a single one with the same mean and variance stands for it.
fn posterior(sample: &SampleVariance, levels: &[f64], weights: &[Vec<f64>]) -> Spread {
    let (mut sum, mut mean, mut square) = (0.0, 0.0, 0.0);
    for (prior, of_freedom) in FREEDOMS.iter().zip(weights) {
        for (level, weight) in levels.iter().zip(of_freedom) {
            let shape = f64::midpoint(*prior, sample.freedom);
            let rate = f64::midpoint(prior * level.exp(), sample.freedom * sample.variance);
            let precision = shape / rate;
            sum += weight;
            mean += weight * precision;
            square += weight * precision * (shape + 1.0) / rate;
        }
    }
    let (mean, square) = (mean / sum, square / sum);
    let spread = (square / (mean * mean) - 1.0).max(1e-6);
    Spread { variance: 1.0 / mean, freedom: 2.0 / spread }
}
