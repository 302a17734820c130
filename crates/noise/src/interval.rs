//! Confidence intervals for a handful of trials: 95 % of them should contain the truth.
//!
//! Student's t over trials, adjusted to hold when trials are few and their spread is skewed. The reasons, and
//! the alternatives that were tried with their figures: `docs/decisions/0001-intervals.md`. The tests at the
//! end show the coverage by simulation.

use crate::student;
use results::Estimate;
use std::collections::BTreeMap;

/// Upper quantile of a two-sided 95 % interval.
const UPPER_QUANTILE: f64 = 0.975;
/// Factor by which half-widths exceed what normal noise would need. It covers what Student's t does not
/// model: skewed spread, and the bias of a high percentile read off a thousand requests
/// (docs/decisions/0001-intervals.md).
pub const ALLOWANCE: f64 = 1.1;
/// The interval on the logarithm widens a side to at most this many half-widths: with three trials it may
/// reach anywhere.
pub const MAX_SIDE_WIDTH: f64 = 1.5;

/// The mean of values that were measured once per trial. A single value has no interval; `None` without a
/// value. `resolution` is the smallest difference that the measurement resolves; the interval is never
/// narrower.
#[must_use]
pub fn mean(values: &[f64], resolution: f64) -> Option<Estimate> {
    mean_with(values, resolution, student::t_95)
}

/// Like [`mean`], for a candidate chosen because its mean is the greatest of `candidates`: chance alone lifts
/// the greatest of many. The intervals of all candidates hold simultaneously in 95 of 100 cases (Bonferroni).
#[must_use]
pub fn mean_of_greatest(values: &[f64], resolution: f64, candidates: usize) -> Option<Estimate> {
    if candidates <= 1 {
        return mean(values, resolution);
    }
    let tail = (1.0 - UPPER_QUANTILE) / candidates as f64;
    mean_with(values, resolution, |freedom| student::quantile(freedom, 1.0 - tail))
}

fn mean_with(values: &[f64], resolution: f64, quantile: impl Fn(f64) -> f64) -> Option<Estimate> {
    let (estimate, standard_error) = mean_and_error(values)?;
    let Some(standard_error) = standard_error else {
        return Some(Estimate::single(estimate));
    };
    let t = quantile(values.len() as f64 - 1.0) * ALLOWANCE;
    let half = (t * standard_error).max(resolution);
    let (low, high) = widened_by_logarithms(values, estimate, half, t);
    Some(Estimate { estimate, low: Some(low), high: Some(high), n: values.len(), alone: None })
}

/// The difference of two modes. Each repeat measured both, one or neither. The difference is taken by pairs,
/// or between the groups if there are so few pairs that they would say next to nothing
/// (docs/decisions/0001-intervals.md). See [`mean`].
#[must_use]
pub fn difference(
    with: &BTreeMap<usize, f64>,
    without: &BTreeMap<usize, f64>,
    resolution: f64,
) -> Option<Estimate> {
    match Sides::new(with, without) {
        Sides::Paired(pairs) => paired_difference(&pairs, resolution),
        Sides::Unpaired(with, without) => unpaired_difference(&with, &without, resolution),
    }
}

/// P-value of a difference: how likely one this large is by chance if there is none (Student's or Welch's
/// test). `None` if there are too few trials.
pub fn p_value(with: &BTreeMap<usize, f64>, without: &BTreeMap<usize, f64>) -> Option<f64> {
    match Sides::new(with, without) {
        Sides::Paired(pairs) => {
            p_value_of_mean(&pairs.iter().map(|(with, without)| with - without).collect::<Vec<f64>>())
        }
        Sides::Unpaired(with, without) => {
            let (difference, error, freedom) = welch(&with, &without)?;
            Some(if difference == 0.0 { 1.0 } else { student::two_sided(difference / error, freedom) })
        }
    }
}

/// Degrees of freedom of a difference.
pub fn freedom(with: &BTreeMap<usize, f64>, without: &BTreeMap<usize, f64>) -> f64 {
    match Sides::new(with, without) {
        Sides::Paired(pairs) => pairs.len() as f64 - 1.0,
        Sides::Unpaired(with, without) => welch(&with, &without).map_or(1.0, |(.., freedom)| freedom),
    }
}

/// P-value of a mean: how likely one this far from zero is by chance if the true mean is zero (Student's
/// test). `None` with fewer than two values.
pub fn p_value_of_mean(values: &[f64]) -> Option<f64> {
    let (mean, error) = mean_and_error(values)?;
    let error = error?;
    Some(if mean == 0.0 { 1.0 } else { student::two_sided(mean / error, values.len() as f64 - 1.0) })
}

/// The values of two modes that a difference is computed from.
enum Sides {
    Paired(Vec<(f64, f64)>),
    Unpaired(Vec<f64>, Vec<f64>),
}

impl Sides {
    fn new(with: &BTreeMap<usize, f64>, without: &BTreeMap<usize, f64>) -> Self {
        let pairs: Vec<(f64, f64)> =
            with.iter().filter_map(|(repeat, with)| Some((*with, *without.get(repeat)?))).collect();
        let values = |side: &BTreeMap<usize, f64>| side.values().copied().collect::<Vec<f64>>();
        let (with, without) = (values(with), values(without));
        let by_pairs = match pairs.len() {
            0 => false,
            1 => with.len() < 2 || without.len() < 2,
            2 => !groups_say_more(&with, &without),
            _ => true,
        };
        if by_pairs { Self::Paired(pairs) } else { Self::Unpaired(with, without) }
    }
}

/// True if two groups with two repeats in common are better compared as groups. That is so if neither has
/// only two values, or if the one with two has the smaller values and so the smaller noise. Two values of the
/// noisier mode are too few to estimate its spread.
fn groups_say_more(with: &[f64], without: &[f64]) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    match (with.len(), without.len()) {
        (2, 2) => false,
        (2, _) => mean(with) <= mean(without),
        (_, 2) => mean(without) <= mean(with),
        _ => true,
    }
}

/// The mean of `with − without` over pairs from the same repeat. See [`mean`].
#[must_use]
pub fn paired_difference(pairs: &[(f64, f64)], resolution: f64) -> Option<Estimate> {
    let differences: Vec<f64> = pairs.iter().map(|(with, without)| with - without).collect();
    mean(&differences, resolution)
}

/// The difference of the means of two unpaired groups (Welch's interval). No interval if a group has a single
/// value; `None` if one is empty.
#[must_use]
pub fn unpaired_difference(with: &[f64], without: &[f64], resolution: f64) -> Option<Estimate> {
    let means = [mean_and_error(with)?.0, mean_and_error(without)?.0];
    let estimate = means[0] - means[1];
    let n = with.len().min(without.len());
    let Some((_, error, freedom)) = welch(with, without) else {
        return Some(Estimate { estimate, low: None, high: None, n, alone: None });
    };
    let half = (student::t_95(freedom) * ALLOWANCE * error).max(resolution);
    Some(Estimate { estimate, low: Some(estimate - half), high: Some(estimate + half), n, alone: None })
}

/// The difference of two means, its standard error and degrees of freedom (B. L. Welch, Biometrika 34 (1947), 28-35).
fn welch(with: &[f64], without: &[f64]) -> Option<(f64, f64, f64)> {
    let ((with_mean, with_error), (without_mean, without_error)) =
        (mean_and_error(with)?, mean_and_error(without)?);
    let (with_variance, without_variance) = (with_error?.powi(2), without_error?.powi(2));
    let variance = with_variance + without_variance;
    let freedom = if variance > 0.0 {
        variance.powi(2)
            / (with_variance.powi(2) / (with.len() as f64 - 1.0)
                + without_variance.powi(2) / (without.len() as f64 - 1.0))
    } else {
        1.0
    };
    Some((with_mean - without_mean, variance.sqrt(), freedom))
}

/// The mean and its standard error; the error needs at least two values.
pub fn mean_and_error(values: &[f64]) -> Option<(f64, Option<f64>)> {
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    Some((values.iter().sum::<f64>() / count, variance(values).map(|variance| (variance / count).sqrt())))
}

/// The sample variance; needs at least two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.len() > 1).then(|| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0))
}

/// The interval `estimate ± half`, with each side extended to the end of the interval on the logarithms, at
/// most [`MAX_SIDE_WIDTH`] half-widths. Latencies have a lower bound and no upper bound: their spread is skewed
/// upwards. Values on both sides of zero have no logarithms and no lower bound, and keep `± half`.
fn widened_by_logarithms(values: &[f64], estimate: f64, half: f64, t: f64) -> (f64, f64) {
    let plain = (estimate - half, estimate + half);
    let all_above = values.iter().all(|value| *value > 0.0);
    if !all_above && !values.iter().all(|value| *value < 0.0) {
        return plain;
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.abs().ln()).collect();
    let Some((center, Some(error))) = mean_and_error(&logarithms) else { return plain };
    let (near, far) = ((center - t * error).exp(), (center + t * error).exp());
    let (low, high) = if all_above { (near, far) } else { (-far, -near) };
    (
        plain.0.min(low.max(estimate - MAX_SIDE_WIDTH * half)),
        plain.1.max(high.min(estimate + MAX_SIDE_WIDTH * half)),
    )
}

/// Requests per second and core, from cores per 1000 requests/s. `None` if no CPU was used.
pub fn requests_per_core(cores_per_1000_rps: &Estimate) -> Option<Estimate> {
    let per_core = cores_per_1000_rps.map_reversed(|cores| 1000.0 / cores);
    let is_finite = |end: Option<f64>| end.is_none_or(|end| end.is_finite() && end > 0.0);
    let has_interval = is_finite(per_core.low) && is_finite(per_core.high);
    let plain = Estimate { low: None, high: None, ..per_core };
    per_core.estimate.is_finite().then_some(if has_interval { per_core } else { plain })
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
