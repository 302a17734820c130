//! Whether a law describes the means of the values: the F test for lack of fit (D. C. Montgomery, "Design and
//! Analysis of Experiments").

use super::usl::{MIN_DEVIATION, Observation};
use results::LackOfFit;
use statrs::distribution::{ContinuousCDF as _, FisherSnedecor};
use std::collections::BTreeMap;

/// Significance level of the test.
const LEVEL: f64 = 0.05;
/// Passes of the fit of values and repeats; the first pass is already exact if no trial is missing.
const PASSES: usize = 100;

/// Compares the residuals of the law with those of the values' own means. `free`: fitted parameters of the
/// shape. `None` if there are no more values than parameters, or if each was measured once.
pub(super) fn lack_of_fit(
    observations: &[Observation],
    repeats: usize,
    sum_of_law: f64,
    free: usize,
) -> Option<LackOfFit> {
    let values: BTreeMap<u64, usize> = {
        let mut known = BTreeMap::new();
        for one in observations {
            let next = known.len();
            known.entry(one.at.to_bits()).or_insert(next);
        }
        known
    };
    let of_law = values.len().checked_sub(1 + free).filter(|freedom| *freedom > 0)? as f64;
    let of_trials = (observations.len() + 1).checked_sub(values.len() + repeats).filter(|rest| *rest > 0)?;
    let groups: Vec<(usize, usize)> =
        observations.iter().map(|one| (values[&one.at.to_bits()], one.repeat)).collect();
    let sum = sum_of_means(observations, &groups, values.len(), repeats);
    let variance = (sum / of_trials as f64).max(MIN_DEVIATION * MIN_DEVIATION);
    let ratio = (sum_of_law - sum).max(0.0) / of_law / variance;
    let distribution = FisherSnedecor::new(of_law, of_trials as f64).ok()?;
    let chance = if ratio > 0.0 { 1.0 - distribution.cdf(ratio) } else { 1.0 };
    Some(LackOfFit { chance, shown: chance < LEVEL })
}

/// Weighted sum of squares around one mean per value and one level per repeat.
fn sum_of_means(
    observations: &[Observation],
    groups: &[(usize, usize)],
    values: usize,
    repeats: usize,
) -> f64 {
    let (mut means, mut levels) = (vec![0.0; values], vec![0.0; repeats]);
    let average = |count: usize, each: &dyn Fn(usize) -> (usize, f64)| {
        let mut sums = vec![(0.0, 0.0); count];
        for (index, one) in observations.iter().enumerate() {
            let (group, rest) = each(index);
            sums[group].0 += one.weight * rest;
            sums[group].1 += one.weight;
        }
        sums.into_iter().map(|(sum, weight)| sum / weight).collect::<Vec<f64>>()
    };
    for _ in 0..PASSES {
        means = average(values, &|index| {
            let (value, repeat) = groups[index];
            (value, observations[index].logarithm - levels[repeat])
        });
        levels = average(repeats, &|index| {
            let (value, repeat) = groups[index];
            (repeat, observations[index].logarithm - means[value])
        });
    }
    let rest = |(one, (value, repeat)): (&Observation, &(usize, usize))| {
        one.weight * (one.logarithm - means[*value] - levels[*repeat]).powi(2)
    };
    observations.iter().zip(groups).map(rest).sum()
}
