//! Levels of significance of repeated looks at growing data, so that the error rate over all looks is kept.
//!
//! Group-sequential bounds with alpha spending (K. K. G. Lan and D. L. DeMets, Biometrika 70 (1983), 659-663): looks early in a
//! comparison spend next to nothing of the error rate, as those of P. C. O'Brien and T. R. Fleming (Biometrics 35 (1979),
//! 549-556) do. The bound of each look follows from the distribution of all sums that have not crossed an earlier bound (P.
//! Armitage, C. K. McPherson and B. C. Rowe, 1969), integrated numerically. Its probability is then used as the level of
//! Student's test, since the noise is estimated (C. Jennison and B. W. Turnbull, Group Sequential Methods (1999), section 4.4).

use noise::student;
use statrs::function::erf::erfc;
use std::cell::RefCell;
use std::collections::HashMap;

/// Distance of the nodes of the integration; the sum of one more repeat has the standard deviation 1.
const STEP: f64 = 0.1;
/// Bound, in standard deviations, of a look that spends nothing.
const NEVER: f64 = 8.0;
/// Error rates below this are not spent.
const MIN_SPENT: f64 = 1e-9;
/// Standard deviations of a step beyond which its density counts as zero.
const REACH: f64 = 8.0;
const BISECTIONS: usize = 50;

/// Number of a look, from 1, and whether another one can follow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Look {
    /// Number of repeats measured.
    pub number: usize,
    /// True if no look can follow, for a reason that is independent of the data, such as time. It spends the rest of the error
    /// rate.
    pub is_last: bool,
}

/// Two-sided levels of all looks.
#[derive(Debug)]
pub(super) struct Boundary {
    levels: Vec<Level>,
    /// Quantiles of Student's t by repeats and level: each takes many steps.
    quantiles: RefCell<HashMap<(usize, u64), f64>>,
}

/// Level of a look: the chance that a single test crosses its bound if there is no difference.
#[derive(Clone, Copy, Debug)]
struct Level {
    regular: f64,
    /// Level if this look is the last one.
    last: f64,
}

impl Boundary {
    /// Bounds that are crossed at any of these looks with the probability `error` if there is no difference.
    pub(super) fn new(error: f64, looks: usize) -> Self {
        let mut walk = Walk::start();
        let mut spent = 0.0;
        let mut levels = Vec::with_capacity(looks);
        for look in 1..=looks {
            let spendable = spendable(error, look as f64 / looks as f64);
            let regular = walk.bound(look, spendable - spent);
            levels.push(Level { regular: level(regular), last: level(walk.bound(look, error - spent)) });
            walk.go_on(regular * (look as f64).sqrt());
            spent = spendable;
        }
        Self { levels, quantiles: RefCell::default() }
    }

    fn level(&self, look: Look) -> f64 {
        // Looks beyond the last planned one have nothing left to spend.
        let level = self.levels.get(look.number.saturating_sub(1));
        level.map_or(0.0, |level| if look.is_last { level.last } else { level.regular })
    }

    /// Half-width of the interval of a look, in standard errors of a mean of `values`; infinite if nothing is spent.
    pub(super) fn critical(&self, look: Look, values: usize) -> f64 {
        let level = self.level(look);
        if level <= 0.0 || values < 2 {
            return f64::INFINITY;
        }
        let found = self.quantiles.borrow().get(&(values, level.to_bits())).copied();
        found.unwrap_or_else(|| {
            let quantile = student::quantile(values as f64 - 1.0, 1.0 - level / 2.0);
            self.quantiles.borrow_mut().insert((values, level.to_bits()), quantile);
            quantile
        })
    }
}

/// Error that may be spent up to this fraction of the repeats, half of it on each side.
fn spendable(error: f64, fraction: f64) -> f64 {
    4.0 * above(quantile(error / 4.0) / fraction.sqrt())
}

/// Two-sided level of a bound.
fn level(bound: f64) -> f64 {
    if bound >= NEVER { 0.0 } else { 2.0 * above(bound) }
}

/// Probability that a standard normal variate is above this value.
fn above(value: f64) -> f64 {
    0.5 * erfc(value / std::f64::consts::SQRT_2)
}

/// Value that a standard normal variate exceeds with this probability, below one half.
fn quantile(probability: f64) -> f64 {
    bisect(0.0, REACH, |value| above(value) > probability)
}

/// Quantile of the standard normal distribution.
#[must_use]
pub fn normal_quantile(fraction: f64) -> f64 {
    if fraction < 0.5 { -quantile(fraction) } else { quantile(1.0 - fraction) }
}

/// Place between both ends where `is_below` turns false.
fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        if is_below(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Density of the sum of the repeats so far that crossed no bound, at multiples of [`STEP`] on both sides of zero.
struct Walk {
    density: Vec<f64>,
}

impl Walk {
    /// The sum of nothing is zero.
    fn start() -> Self {
        Self { density: vec![1.0 / STEP] }
    }

    /// Nodes on each side of zero.
    fn side(&self) -> usize {
        self.density.len() / 2
    }

    /// Bound of the next look, in standard deviations of its sum, that is crossed with this probability.
    fn bound(&self, look: usize, probability: f64) -> f64 {
        if probability < MIN_SPENT {
            return NEVER;
        }
        let root = (look as f64).sqrt();
        bisect(0.0, NEVER, |bound| self.crosses(bound * root) > probability)
    }

    /// Probability that the next sum is beyond a bound on either side, which is the same on both.
    fn crosses(&self, bound: f64) -> f64 {
        let side = self.side();
        let first = ((bound - REACH) / STEP).floor() as i64 + side as i64;
        let first = usize::try_from(first).unwrap_or(0).min(self.density.len());
        let nodes = self.density.iter().enumerate().skip(first);
        let place = |node: usize| (node as f64 - side as f64) * STEP;
        2.0 * nodes.map(|(node, density)| density * STEP * above(bound - place(node))).sum::<f64>()
    }

    /// Adds a repeat, and removes what crosses the bound.
    fn go_on(&mut self, bound: f64) {
        let reach = (REACH / STEP) as usize;
        let step_density: Vec<f64> = (0..=reach).map(|distance| normal(distance as f64 * STEP)).collect();
        let side = (bound / STEP) as usize;
        // Without a bound near by, the density ends where it vanishes.
        let side = side.min(self.side() + reach);
        let (old, old_side) = (&self.density, self.side());
        let mut density: Vec<f64> = (0..=2 * side)
            .map(|node| {
                // Place of the node in the old density.
                let place = (node + old_side) as i64 - side as i64;
                let from = usize::try_from(place - reach as i64).unwrap_or(0).min(old.len());
                let to = usize::try_from(place + reach as i64 + 1).unwrap_or(0).min(old.len());
                let part = |other: usize| old[other] * step_density[place.abs_diff(other as i64) as usize];
                (from..to).map(part).sum::<f64>() * STEP
            })
            .collect();
        // The outermost nodes stand for what is left up to the bound.
        let share = ((bound - side as f64 * STEP) / STEP + 0.5).min(1.5);
        density[0] *= share;
        let last = density.len() - 1;
        if last > 0 {
            density[last] *= share;
        }
        self.density = density;
    }
}

fn normal(value: f64) -> f64 {
    (-value * value / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(boundary: &Boundary) -> Vec<f64> {
        boundary.levels.iter().map(|level| quantile(level.regular / 2.0)).collect()
    }

    #[test]
    fn bounds_match_published_ones() {
        // Lan and DeMets, spending like O'Brien and Fleming, two-sided 5 %, five looks: as ldbounds and gsDesign print them.
        let expected = [4.8769, 3.3569, 2.6803, 2.2898, 2.0310];
        for (bound, expected) in bounds(&Boundary::new(0.05, 5)).into_iter().zip(expected) {
            assert!((bound - expected).abs() < 0.005, "{bound} instead of {expected}");
        }
        let single = bounds(&Boundary::new(0.05, 1));
        assert!((single[0] - 1.95996).abs() < 1e-4, "{single:?}");
    }

    #[test]
    fn normal_quantiles_match_textbook_and_are_symmetric() {
        for (fraction, expected) in [(0.5, 0.0), (0.8413, 1.0), (0.975, 1.95996), (0.9999, 3.71902)] {
            assert!((normal_quantile(fraction) - expected).abs() < 1e-3, "{fraction}");
            assert!((normal_quantile(1.0 - fraction) + expected).abs() < 1e-3, "{fraction}");
        }
    }

    #[test]
    fn early_end_spends_the_rest() {
        let boundary = Boundary::new(0.05, 30);
        let at = |number, is_last| boundary.critical(Look { number, is_last }, 10_000);
        assert!(at(4, false).is_infinite() || at(4, false) > 4.0);
        assert!((at(1, true) - 1.96).abs() < 0.01, "a single look spends all: {}", at(1, true));
        assert!(at(15, true) < 2.1 && at(15, false) > 2.7, "{} {}", at(15, true), at(15, false));
        assert!((at(30, true) - at(30, false)).abs() < 1e-3);
        assert!(at(31, false).is_infinite(), "nothing is left");
    }
}
