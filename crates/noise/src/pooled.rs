//! Variances of cells with two trials or fewer, none of which can show a spread of its own: each is a weighted
//! mean of the sample variances of its cell, of its mode and of the run. The weights are fixed, so that the
//! degrees of freedom are known. They were chosen by simulation (docs/decisions/0001-intervals.md): the more the
//! run counts, the more is found; the more the cell and its mode count, the less a noisy cell shows by chance.

use super::moderated::{SampleVariance, Spread};

/// Weights of the cell's own variance and of its mode's; the rest is the run's.
const OWN: f64 = 0.2;
const MODE: f64 = 0.2;

/// Each cell's variance, with the degrees of freedom that it has if all cells are alike.
pub(super) fn pooled(samples: &[SampleVariance]) -> Vec<Spread> {
    (0..samples.len()).map(|cell| of_cell(cell, samples)).collect()
}

fn of_cell(cell: usize, samples: &[SampleVariance]) -> Spread {
    let is_of_mode = |sample: &&SampleVariance| sample.place.mode == samples[cell].place.mode;
    let all: f64 = samples.iter().map(|sample| sample.freedom).sum();
    let of_mode: f64 = samples.iter().filter(is_of_mode).map(|sample| sample.freedom).sum();
    let weight = |(index, sample): (usize, &SampleVariance)| {
        let own = if index == cell { OWN } else { 0.0 };
        let mode = if is_of_mode(&sample) { MODE * sample.freedom / of_mode } else { 0.0 };
        own + mode + (1.0 - OWN - MODE) * sample.freedom / all
    };
    let weights: Vec<f64> = samples.iter().enumerate().map(weight).collect();
    let weighted = || weights.iter().zip(samples);
    let uncertainty: f64 = weighted().map(|(weight, sample)| weight * weight / sample.freedom).sum();
    Spread {
        variance: weighted().map(|(weight, sample)| weight * sample.variance).sum(),
        freedom: 1.0 / uncertainty,
        shared: 1.0 - OWN * OWN / samples[cell].freedom / uncertainty,
    }
}
