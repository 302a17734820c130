//! Student's t distribution for real-valued degrees of freedom.

use statrs::distribution::{ContinuousCDF, StudentsT};
use std::sync::OnceLock;

/// Quantiles are tabulated at this many steps of the reciprocal of the degrees of freedom, and interpolated.
const STEPS: usize = 64;
const MAX_QUANTILE: f64 = 1e9;
/// The quantile for infinite degrees of freedom.
const NORMAL_95: f64 = 1.959_963_985;

/// The half-width of a two-sided 95 % confidence interval, in standard errors. Tabulated, since an exact
/// quantile takes thousands of steps.
pub fn t_95(freedom: f64) -> f64 {
    static QUANTILES: OnceLock<Vec<f64>> = OnceLock::new();
    let find = |step: usize| match step {
        0 => NORMAL_95.ln(),
        _ => quantile(STEPS as f64 / step as f64, 0.975).ln(),
    };
    let quantiles = QUANTILES.get_or_init(|| (0..=STEPS).map(find).collect());
    let place = STEPS as f64 / freedom.max(1.0);
    let step = (place as usize).min(STEPS - 1);
    let share = place - step as f64;
    (quantiles[step] * (1.0 - share) + quantiles[step + 1] * share).exp()
}

/// The quantile of t at a probability of one half or more. (The crate's own takes minutes for some degrees of
/// freedom.)
pub fn quantile(freedom: f64, quantile: f64) -> f64 {
    let distribution = distribution(freedom);
    let (mut low, mut high) = (0.0, 1.0);
    while distribution.cdf(high) < quantile && high < MAX_QUANTILE {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if distribution.cdf(middle) < quantile { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Two-sided p-value: how likely a t this far from zero is by chance.
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_infinite() { 0.0 } else { 2.0 * distribution(freedom).cdf(-t.abs()) }
}

fn distribution(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).expect("scale and degrees of freedom are positive")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_textbook() {
        for (freedom, expected) in
            [(1.0, 12.706_205), (2.0, 4.302_653), (4.0, 2.776_445), (10.0, 2.228_139), (1e6, 1.959_966)]
        {
            let found = t_95(freedom);
            assert!((found / expected - 1.0).abs() < 1e-3, "{freedom}: {found}");
            assert!((two_sided(expected, freedom) - 0.05).abs() < 1e-5, "{freedom}");
        }
        assert!((t_95(2.5) / quantile(2.5, 0.975) - 1.0).abs() < 1e-3);
    }
}
