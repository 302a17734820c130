//! What the probes so far say about the highest good rate.
//!
//! A distribution over the logarithm of that rate, on a grid, and over the blur of the border. A probe at a
//! rate holds with a probability that falls from nearly 1 to nearly 0 as the rate passes the border; Bayes'
//! rule does the rest. A probe may give the wrong result at any rate ([`LAPSE_RATE`]). No probe is therefore taken
//! as proof, and several that agree outweigh one that does not. This is probabilistic bisection (Horstein
//! 1963; Waeber, Frazier and Henderson 2013) with the psychometric curve of adaptive testing (Watson and
//! Pelli 1983).

use statrs::distribution::{ContinuousCDF as _, Normal};

/// Lapse rate: how often a probe gives the wrong result far from the border, such as a stall unrelated to the
/// rate, or luck.
const LAPSE_RATE: f64 = 0.05;
/// Possible blurs of the border, as standard deviations of the logarithm of the rate. The probes decide which
/// one applies.
const SPREADS: [f64; 4] = [0.003, 0.01, 0.03, 0.10];
/// Grid points per step of the required precision.
const POINTS_PER_STEP: f64 = 4.0;
/// Smaller weights are set to zero: eight probes in a row would have to be wrong.
const BEYOND_DOUBT: f64 = 1e-14;
/// The grid extends beyond the range by this much of the logarithm: the border may lie outside.
const MARGIN: f64 = 0.7;

pub(super) struct Posterior {
    first: f64,
    step: f64,
    /// Weight of each blur, per grid point.
    weights: Vec<[f64; SPREADS.len()]>,
}

impl Posterior {
    /// A belief that only knows the range.
    pub(super) fn new(lowest: f64, highest: f64, precision: f64) -> Self {
        let (first, last) = (lowest.ln() - MARGIN, highest.ln() + MARGIN);
        let step = precision.ln_1p() / POINTS_PER_STEP;
        let points = ((last - first) / step).ceil() as usize + 1;
        let mut posterior = Self { first, step, weights: vec![[1.0; SPREADS.len()]; points] };
        posterior.normalise();
        posterior
    }

    fn logarithm_at(&self, point: usize) -> f64 {
        self.first + point as f64 * self.step
    }

    /// Multiplies the weights above `rate` by `doubt`: the border is not expected there.
    pub(super) fn expect_below(&mut self, rate: f64, doubt: f64) {
        let bound = rate.ln();
        for point in 0..self.weights.len() {
            if self.logarithm_at(point) > bound {
                self.weights[point].iter_mut().for_each(|weight| *weight *= doubt);
            }
        }
        self.normalise();
    }

    /// Updates the belief with a probe at `rate`.
    pub(super) fn learn(&mut self, rate: f64, held: bool) {
        let normal = Normal::standard();
        let logarithm = rate.ln();
        for point in 0..self.weights.len() {
            if self.weights[point] == [0.0; SPREADS.len()] {
                continue;
            }
            let distance = self.logarithm_at(point) - logarithm;
            for (weight, spread) in self.weights[point].iter_mut().zip(SPREADS) {
                let deviations = distance / spread;
                // Beyond 6 deviations the curve is flat to nine digits.
                let above =
                    if deviations.abs() > 6.0 { f64::from(deviations > 0.0) } else { normal.cdf(deviations) };
                let holds = LAPSE_RATE + (1.0 - 2.0 * LAPSE_RATE) * above;
                *weight *= if held { holds } else { 1.0 - holds };
            }
        }
        self.normalise();
    }

    fn normalise(&mut self) {
        let total: f64 = self.weights.iter().flatten().sum();
        for weight in self.weights.iter_mut().flatten() {
            *weight /= total;
            if *weight < BEYOND_DOUBT {
                *weight = 0.0;
            }
        }
    }

    /// The rate below which the border lies with this probability.
    pub(super) fn quantile(&self, probability: f64) -> f64 {
        let mut below = 0.0;
        for (point, weights) in self.weights.iter().enumerate() {
            let here: f64 = weights.iter().sum();
            if below + here >= probability {
                // The weight is assumed to be uniform within a grid point.
                let within = if here > 0.0 { (probability - below) / here - 0.5 } else { 0.0 };
                return (self.logarithm_at(point) + within * self.step).exp();
            }
            below += here;
        }
        self.logarithm_at(self.weights.len() - 1).exp()
    }

    /// Probability that the border lies below `rate`.
    pub(super) fn probability_below(&self, rate: f64) -> f64 {
        let bound = rate.ln();
        let points = self.weights.iter().enumerate();
        points.filter(|(point, _)| self.logarithm_at(*point) < bound).flat_map(|(_, weights)| weights).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_contradicting_probe_changes_little() {
        let mut posterior = Posterior::new(1.0, 1e5, 0.02);
        for _ in 0..4 {
            posterior.learn(900.0, true);
            posterior.learn(1100.0, false);
        }
        let before = posterior.quantile(0.5);
        posterior.learn(500.0, false);
        let after = posterior.quantile(0.5);
        assert!((after / before - 1.0).abs() < 0.02, "{before} then {after}");
        assert!((900.0..1100.0).contains(&after));
    }

    #[test]
    fn contradicting_probes_widen_interval() {
        let width = |blurred: bool| {
            let mut posterior = Posterior::new(1.0, 1e5, 0.02);
            for rate in [800.0, 900.0, 950.0, 1050.0, 1100.0, 1200.0] {
                posterior.learn(rate, rate < 1000.0);
                if blurred {
                    posterior.learn(rate, rate > 1000.0);
                }
            }
            posterior.quantile(0.95) / posterior.quantile(0.05)
        };
        assert!(width(true) > 1.5 * width(false), "{} and {}", width(true), width(false));
    }
}
