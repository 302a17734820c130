//! Distributions for histograms.
//!
//! Every candidate has the mean of the histogram, which its sum gives exactly, so one parameter at most is left: the
//! one under which the counts of the buckets are most likely. Bounds of Istio's buckets are a factor of 2 to 5 apart, so
//! a percentile interpolated in a bucket would be off by as much.

use crate::histogram::{Bucket, Histogram};
use experiment::topology::distribution::{Distribution, NORMAL_P99};
use statrs::function::erf::erfc;

/// Fraction of the values outside the mean's bucket below which an amount counts as fixed.
const MAX_OUTSIDE: f64 = 0.002;
/// Range of the log-normal's sigma: a p99 of 1.02 to 10 000 times the median.
const SIGMAS: (f64, f64) = (0.01, 4.0);
/// Difference in log likelihood for which the log-normal is given up.
const MIN_ADVANTAGE: f64 = 2.0;
/// Squared coefficient of variation below which an amount counts as fixed.
const MIN_VARIATION: f64 = 1e-4;

/// A distribution fitted to a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The distribution, with the histogram's mean.
    pub distribution: Distribution,
    /// Number of values.
    pub values: f64,
    /// Bounds of the bucket with the median.
    pub median_within: (f64, f64),
}

/// Fits a distribution to a histogram; `None` if it is empty.
#[must_use]
pub fn fit(histogram: &Histogram) -> Option<Fit> {
    let mean = histogram.mean().filter(|mean| mean.is_finite())?;
    let buckets = histogram.buckets();
    let values: f64 = buckets.iter().map(|bucket| bucket.count).sum();
    let median_within = median_bucket(&buckets, values).unwrap_or((mean, mean));
    let distribution = choose(&buckets, mean, values);
    Some(Fit { distribution, values: values.max(histogram.values()), median_within })
}

fn choose(buckets: &[Bucket], mean: f64, values: f64) -> Distribution {
    let at_mean: f64 =
        buckets.iter().filter(|one| one.low <= mean && mean <= one.high).map(|one| one.count).sum();
    if mean <= 0.0 || at_mean >= values * (1.0 - MAX_OUTSIDE) {
        return Distribution::Fixed(mean);
    }
    let likelihood = |cumulative: &dyn Fn(f64) -> f64| -> f64 {
        buckets
            .iter()
            .map(|one| one.count * (cumulative(one.high) - cumulative(one.low)).max(1e-12).ln())
            .sum()
    };
    let log_normal = |sigma: f64| {
        let mu = mean.ln() - sigma * sigma / 2.0;
        likelihood(&|value| normal_cumulative((value.ln() - mu) / sigma))
    };
    let (sigma, of_log_normal) = maximum(SIGMAS, log_normal);
    let of_exponential = likelihood(&|value| 1.0 - (-value / mean).exp());
    let uniform = |half: f64| likelihood(&|value| ((value - mean + half) / (2.0 * half)).clamp(0.0, 1.0));
    let (half, of_uniform) = maximum((mean * 0.01, mean), uniform);
    if of_uniform > of_log_normal + MIN_ADVANTAGE && of_uniform > of_exponential + MIN_ADVANTAGE {
        Distribution::Uniform { low: (mean - half).max(0.0), high: mean + half }
    } else if of_exponential > of_log_normal + MIN_ADVANTAGE {
        Distribution::Exponential { mean }
    } else {
        log_normal_of(mean, sigma)
    }
}

fn log_normal_of(mean: f64, sigma: f64) -> Distribution {
    let median = mean / (sigma * sigma / 2.0).exp();
    Distribution::LogNormal { median, p99: median * (NORMAL_P99 * sigma).exp() }
}

/// Distribution with this mean and variance: log-normal, or fixed without a noticeable variance.
#[must_use]
pub fn from_moments(mean: f64, variance: f64) -> Distribution {
    let variation = variance / (mean * mean);
    if mean <= 0.0 || variation.is_nan() || variation < MIN_VARIATION {
        return Distribution::Fixed(mean.max(0.0));
    }
    log_normal_of(mean, variation.ln_1p().sqrt().min(SIGMAS.1))
}

/// Variance of a distribution.
#[must_use]
pub fn variance(distribution: &Distribution) -> f64 {
    match *distribution {
        Distribution::Fixed(_) => 0.0,
        Distribution::Uniform { low, high } => (high - low).powi(2) / 12.0,
        Distribution::Exponential { mean } => mean * mean,
        Distribution::LogNormal { .. } => distribution.mean().powi(2) * distribution.sigma().powi(2).exp_m1(),
    }
}

/// Median of a distribution.
#[must_use]
pub fn median(distribution: &Distribution) -> f64 {
    distribution.draw(0.5, 0.0)
}

/// Mean of the longest of independent amounts, each there with a probability.
#[must_use]
pub fn mean_of_longest(amounts: &[(Distribution, f64)]) -> f64 {
    const STEPS: usize = 400;
    let end =
        amounts.iter().map(|(amount, _)| amount.mean() + 8.0 * variance(amount).sqrt()).fold(0.0, f64::max);
    // The integral of the probability that one is longer.
    let longer = |value: f64| {
        let none: f64 =
            amounts.iter().map(|(amount, part)| 1.0 - part * (1.0 - cumulative(amount, value))).product();
        1.0 - none
    };
    let step = end / STEPS as f64;
    (0..STEPS).map(|index| longer((index as f64 + 0.5) * step) * step).sum()
}

/// Probability of at most this value.
fn cumulative(distribution: &Distribution, value: f64) -> f64 {
    match *distribution {
        Distribution::Fixed(amount) => f64::from(u8::from(value >= amount)),
        Distribution::Uniform { low, high } => ((value - low) / (high - low)).clamp(0.0, 1.0),
        Distribution::Exponential { mean } => 1.0 - (-value / mean).exp(),
        Distribution::LogNormal { median, .. } => {
            normal_cumulative((value / median).ln() / distribution.sigma())
        }
    }
}

/// Golden-section search between bounds, on a logarithmic scale; the likelihoods here have one maximum.
fn maximum((low, high): (f64, f64), value: impl Fn(f64) -> f64) -> (f64, f64) {
    const STEPS: usize = 28;
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (low.ln(), high.ln());
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (value(left.exp()), value(right.exp()));
    for _ in 0..STEPS {
        if at_left > at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = value(left.exp());
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = value(right.exp());
        }
    }
    let best = f64::midpoint(low, high).exp();
    (best, value(best))
}

fn normal_cumulative(value: f64) -> f64 {
    if value == f64::INFINITY { 1.0 } else { 0.5 * erfc(-value / std::f64::consts::SQRT_2) }
}

fn median_bucket(buckets: &[Bucket], values: f64) -> Option<(f64, f64)> {
    let mut below = 0.0;
    buckets.iter().find_map(|bucket| {
        below += bucket.count;
        (below * 2.0 >= values).then_some((bucket.low, bucket.high))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds of Istio's histograms.
    const BOUNDS: [f64; 16] =
        [0.5, 1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 3e4, 6e4, f64::INFINITY];

    fn histogram(quantile: impl Fn(f64) -> f64) -> Histogram {
        const VALUES: usize = 10_000;
        let values: Vec<f64> =
            (0..VALUES).map(|index| quantile((index as f64 + 0.5) / VALUES as f64)).collect();
        let mut histogram =
            Histogram { sum: values.iter().sum(), count: VALUES as f64, ..Histogram::default() };
        for bound in BOUNDS {
            let count = values.iter().filter(|value| **value <= bound).count();
            histogram.add(bound, count as f64).unwrap();
        }
        histogram
    }

    fn normal_quantile(at: f64) -> f64 {
        -std::f64::consts::SQRT_2 * statrs::function::erf::erfc_inv(2.0 * at)
    }

    fn assert_close(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() < tolerance, "{found} instead of {expected}");
    }

    #[test]
    fn log_normal_histogram_gives_its_median_and_p99() {
        for (median_amount, p99) in [(3.0, 9.0), (40.0, 400.0), (900.0, 1400.0), (2000.0, 50_000.0)] {
            let truth = Distribution::LogNormal { median: median_amount, p99 };
            let found = fit(&histogram(|at| truth.draw(at, normal_quantile(at)))).unwrap().distribution;
            assert_close(median(&found), median_amount, 0.05);
            let Distribution::LogNormal { p99: found, .. } = found else { panic!("{found:?}") };
            assert_close(found, p99, 0.15);
        }
    }

    #[test]
    fn other_families_are_recognised() {
        let fixed = fit(&histogram(|_| 37.0)).unwrap();
        assert_eq!((fixed.distribution, fixed.median_within), (Distribution::Fixed(37.0), (25.0, 50.0)));
        let exponential = fit(&histogram(|at| -30.0 * (1.0 - at).ln())).unwrap().distribution;
        assert!(matches!(exponential, Distribution::Exponential { .. }), "{exponential:?}");
        let uniform = fit(&histogram(|at| 20.0 + 400.0 * at)).unwrap().distribution;
        let Distribution::Uniform { low, high } = uniform else { panic!("{uniform:?}") };
        assert_close(low, 20.0, 0.3);
        assert_close(high, 420.0, 0.05);
        assert_eq!(fit(&histogram(|_| 0.0)).unwrap().distribution, Distribution::Fixed(0.0));
    }

    #[test]
    fn longest_of_several_amounts_is_longer_than_the_longest_mean() {
        let fixed = [(Distribution::Fixed(2.0), 1.0), (Distribution::Fixed(5.0), 1.0)];
        assert_close(mean_of_longest(&fixed), 5.0, 0.01);
        // Of two exponential amounts: 1 + 1/2 means.
        let exponential = [(Distribution::Exponential { mean: 1.0 }, 1.0); 2];
        assert_close(mean_of_longest(&exponential), 1.5, 0.01);
        assert_close(mean_of_longest(&[(Distribution::Fixed(4.0), 0.25)]), 1.0, 0.01);
        assert_eq!(mean_of_longest(&[]), 0.0);
    }

    #[test]
    fn moments_give_back_their_distribution() {
        let truth = Distribution::LogNormal { median: 2.0, p99: 11.0 };
        let found = from_moments(truth.mean(), variance(&truth));
        let Distribution::LogNormal { median, p99 } = found else { panic!("{found:?}") };
        assert_close(median, 2.0, 1e-9);
        assert_close(p99, 11.0, 1e-9);
        assert_eq!(from_moments(3.0, -1.0), Distribution::Fixed(3.0));
        assert_eq!(from_moments(-1.0, 1.0), Distribution::Fixed(0.0));
    }

    #[test]
    fn empty_and_contradictory_histograms_are_no_distribution_or_a_finite_one() {
        assert_eq!(fit(&Histogram::default()), None);
        let mut falling = Histogram { sum: 1e9, count: 10.0, ..Histogram::default() };
        for (bound, count) in [(1.0, 10.0), (5.0, 3.0), (f64::INFINITY, 4.0)] {
            falling.add(bound, count).unwrap();
        }
        assert!(fit(&falling).unwrap().distribution.mean().is_finite());
    }
}
