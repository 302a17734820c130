//! Verdict on one figure, from its values by arm and repeat.
//!
//! A value of a repeat is the logarithm of the head divided by the mean of base and control, which are the same program. Their
//! spread between repeats is the noise: samples within a trial are correlated and say nothing of it.

use super::boundary::{Boundary, Look};
use crate::interval::{self, mean_and_error};
use results::{Estimate, FigureVerdict, InconclusiveReason};
use std::collections::{BTreeMap, BTreeSet};

/// Chance that any figure of a comparison is called worse or better, at any look, if nothing changed: at most three of a
/// hundred comparisons. People stop believing a gate that is often wrong.
pub const ALARM_RATE: f64 = 0.03;
/// Chance that a figure is called equivalent, at any look, although it differs by the margin.
pub const MISS_RATE: f64 = 0.05;
/// Chance per figure that the control is called different from the base, at any look, although the machine did not drift.
const DRIFT_RATE: f64 = 0.005;
/// Fewest repeats for a verdict: fewer do not show how far repeats differ.
pub const MIN_REPEATS: usize = 4;
/// A drift below this fraction of the margin cannot be the cause of a verdict.
const DRIFT_OF_MARGIN: f64 = 0.5;

/// Values of one figure in each arm, by repeat.
#[derive(Clone, Debug, Default)]
pub struct ArmValues {
    /// Base.
    pub base: BTreeMap<usize, f64>,
    /// Head.
    pub head: BTreeMap<usize, f64>,
    /// Base once more.
    pub control: BTreeMap<usize, f64>,
}

impl ArmValues {
    /// True if no arm has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.base.is_empty() && self.head.is_empty() && self.control.is_empty()
    }

    /// Logarithm of the head's ratio, by repeat.
    fn of_head(&self) -> Vec<f64> {
        let value = |(repeat, head): (&usize, &f64)| {
            let same = [self.base.get(repeat), self.control.get(repeat)];
            let logarithms: Vec<f64> =
                same.into_iter().flatten().filter_map(|value| logarithm(*value)).collect();
            let count = logarithms.len() as f64;
            (count > 0.0).then_some(logarithm(*head)? - logarithms.iter().sum::<f64>() / count)
        };
        self.head.iter().filter_map(value).collect()
    }

    /// Logarithm of the control's ratio, by repeat.
    fn of_control(&self) -> Vec<f64> {
        let value = |(repeat, control): (&usize, &f64)| {
            Some(logarithm(*control)? - logarithm(*self.base.get(repeat)?)?)
        };
        self.control.iter().filter_map(value).collect()
    }
}

fn logarithm(value: f64) -> Option<f64> {
    (value > 0.0).then(|| value.ln())
}

/// Direction in which a figure gets worse.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WorseIf {
    /// Such as times, CPU and memory.
    Higher,
    /// Such as throughput.
    Lower,
}

/// Rule by which a figure is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Its part of the error rate, relative to the other figures.
    pub weight: u32,
    /// Direction in which it gets worse.
    pub worse_if: WorseIf,
    /// Relative difference up to which head and base count as equivalent.
    pub margin: f64,
    /// Smallest relative difference that its measurement resolves.
    pub resolution: f64,
}

/// Tests of a comparison: how far apart arms must be at each look.
#[derive(Debug)]
pub struct Tests {
    /// Bounds by weight of a figure.
    alarms: BTreeMap<u32, Boundary>,
    weights: u32,
    drift: Boundary,
    equivalence: Boundary,
}

impl Tests {
    /// Tests of figures with these weights at up to `looks` looks.
    #[must_use]
    pub fn new(weights: &[u32], looks: usize) -> Self {
        let all = weights.iter().sum::<u32>().max(1);
        let alarm = |weight: &u32| (*weight, Boundary::new(error_rate(*weight, all), looks));
        Self {
            alarms: weights.iter().collect::<BTreeSet<_>>().into_iter().map(alarm).collect(),
            weights: all,
            drift: Boundary::new(DRIFT_RATE, looks),
            // Two-sided: the chance of either end is half of it.
            equivalence: Boundary::new(2.0 * MISS_RATE, looks),
        }
    }

    /// Chance that a figure of this weight is called worse or better at any look if nothing changed.
    #[must_use]
    pub fn error_rate(&self, weight: u32) -> f64 {
        error_rate(weight, self.weights)
    }

    /// Smallest margin within which a comparison with this many repeats shows that nothing changed, in four of five cases.
    /// `deviation` is that of the relative difference between two trials of a repeat.
    #[must_use]
    pub fn resolvable_margin(&self, deviation: f64, repeats: usize) -> f64 {
        /// Quantile of the normal distribution: nine of ten on each side, so four of five on both.
        const POWER: f64 = 1.2816;
        let look = Look { number: repeats, is_last: true };
        // The head differs from a mean of two.
        let error = deviation * (0.75 / repeats.max(1) as f64).sqrt();
        (self.equivalence.critical(look, repeats) + POWER) * error
    }

    /// Judges a figure at a look.
    ///
    /// # Panics
    /// Panics if no figure has the weight of the rule.
    #[must_use]
    pub fn judge(&self, values: &ArmValues, rule: Rule, look: Look) -> Judgement {
        let (head, control) = (values.of_head(), values.of_control());
        let alarm = &self.alarms[&rule.weight];
        let within = |boundary: &Boundary, values: &[f64]| {
            Logarithms::new(values, boundary.critical(look, values.len()), rule.resolution)
        };
        let (alarm, equivalence) = (within(alarm, &head), within(&self.equivalence, &head));
        let drift = within(&self.drift, &control);
        let mean =
            |values: &BTreeMap<_, _>| interval::mean(&values.values().copied().collect::<Vec<_>>(), 0.0);
        let judged = Judgement {
            verdict: FigureVerdict::Inconclusive,
            reason: Some(InconclusiveReason::TooFewTrials),
            base: mean(&values.base),
            head: mean(&values.head),
            control: mean(&values.control),
            ratio: alarm.map(Logarithms::ratio),
            equivalence_ratio: equivalence.map(Logarithms::ratio),
            control_ratio: drift.map(Logarithms::ratio),
            repeats: head.len(),
        };
        let (Some(alarm), Some(equivalence)) = (alarm, equivalence) else { return judged };
        if head.len() < MIN_REPEATS || control.len() < MIN_REPEATS {
            return judged;
        }
        let widest = rule.margin.ln_1p();
        let has_drifted =
            drift.is_some_and(|drift| drift.excludes_zero() && drift.mean.abs() >= DRIFT_OF_MARGIN * widest);
        let (verdict, reason) = if has_drifted {
            (FigureVerdict::Inconclusive, Some(InconclusiveReason::MachineDrifted))
        } else if equivalence.is_within(widest) {
            (FigureVerdict::Equivalent, None)
        } else if !alarm.excludes_zero() {
            (FigureVerdict::Inconclusive, Some(InconclusiveReason::NotDecided))
        } else if (alarm.mean > 0.0) == (rule.worse_if == WorseIf::Higher) {
            (FigureVerdict::Worse, None)
        } else {
            (FigureVerdict::Better, None)
        };
        Judgement { verdict, reason, ..judged }
    }
}

/// Share of the error rate that a weight among all weights has.
pub(crate) fn error_rate(weight: u32, all: u32) -> f64 {
    ALARM_RATE * f64::from(weight) / f64::from(all)
}

/// Outcome of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Verdict.
    pub verdict: FigureVerdict,
    /// Reason for which it is inconclusive.
    pub reason: Option<InconclusiveReason>,
    /// Mean of the base.
    pub base: Option<Estimate>,
    /// Mean of the head.
    pub head: Option<Estimate>,
    /// Mean of the control.
    pub control: Option<Estimate>,
    /// Head divided by base and control.
    pub ratio: Option<Estimate>,
    /// The same with the interval for equivalence.
    pub equivalence_ratio: Option<Estimate>,
    /// Control divided by base.
    pub control_ratio: Option<Estimate>,
    /// Repeats that have the head and the base or the control.
    pub repeats: usize,
}

/// Half-width, as a logarithm, from which an interval says nothing.
const WIDEST: f64 = 1.0;

/// Mean of logarithms, with the half-width of its interval.
#[derive(Clone, Copy)]
pub(crate) struct Logarithms {
    pub(crate) mean: f64,
    pub(crate) half: f64,
    /// Number of values.
    pub(crate) n: usize,
}

impl Logarithms {
    fn new(values: &[f64], critical: f64, resolution: f64) -> Option<Self> {
        let (mean, error) = mean_and_error(values)?;
        // Without noise, an infinite bound still has no interval.
        let half = match error {
            Some(error) if critical.is_finite() => (critical * error).max(resolution),
            _ => f64::INFINITY,
        };
        Some(Self { mean, half, n: values.len() })
    }

    pub(crate) fn excludes_zero(self) -> bool {
        self.mean.abs() > self.half
    }

    pub(crate) fn is_within(self, widest: f64) -> bool {
        self.mean.abs() + self.half < widest
    }

    pub(crate) fn ratio(self) -> Estimate {
        let end = |logarithm: f64| (self.half < WIDEST).then(|| logarithm.exp());
        Estimate {
            estimate: self.mean.exp(),
            low: end(self.mean - self.half),
            high: end(self.mean + self.half),
            n: self.n,
            alone: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { weight: 1, worse_if: WorseIf::Higher, margin: 0.05, resolution: 0.0 };
    const LAST: Look = Look { number: 8, is_last: true };

    fn values(base: &[f64], head: &[f64], control: &[f64]) -> ArmValues {
        let by_repeat = |values: &[f64]| values.iter().copied().enumerate().collect();
        ArmValues { base: by_repeat(base), head: by_repeat(head), control: by_repeat(control) }
    }

    /// A figure of about 100 in eight repeats, times these factors.
    fn around(head: f64, control: f64) -> ArmValues {
        let base = [100.0, 101.0, 99.5, 100.4, 99.1, 100.9, 100.2, 99.8];
        let noise = [1.004, 0.997, 1.002, 0.999, 1.003, 0.996, 1.001, 1.0];
        let times = |factor: f64, shift: usize| -> Vec<f64> {
            (0..8).map(|repeat| base[repeat] * factor * noise[(repeat + shift) % 8]).collect()
        };
        values(&base, &times(head, 0), &times(control, 3))
    }

    fn verdict(values: &ArmValues, worse_if: WorseIf) -> (FigureVerdict, Option<InconclusiveReason>) {
        let judged = Tests::new(&[1; 4], 8).judge(values, Rule { worse_if, ..RULE }, LAST);
        (judged.verdict, judged.reason)
    }

    #[test]
    fn direction_margin_and_drift_decide() {
        use FigureVerdict::{Better, Equivalent, Inconclusive, Worse};
        use WorseIf::{Higher, Lower};
        assert_eq!(verdict(&around(1.1, 1.0), Higher), (Worse, None));
        assert_eq!(verdict(&around(1.1, 1.0), Lower), (Better, None));
        assert_eq!(verdict(&around(0.9, 1.0), Higher), (Better, None));
        assert_eq!(verdict(&around(1.01, 1.0), Higher), (Equivalent, None), "shown, and within the margin");
        let drifted = (Inconclusive, Some(InconclusiveReason::MachineDrifted));
        assert_eq!(verdict(&around(1.1, 1.1), Higher), drifted);
        assert_eq!(verdict(&around(1.0, 0.9), Higher), drifted);
    }

    #[test]
    fn few_repeats_decide_nothing_and_missing_ones_are_counted() {
        let mut few = around(1.5, 1.0);
        few.head.retain(|repeat, _| *repeat < MIN_REPEATS - 1);
        let too_few = (FigureVerdict::Inconclusive, Some(InconclusiveReason::TooFewTrials));
        assert_eq!(verdict(&few, WorseIf::Higher), too_few);
        assert_eq!(verdict(&ArmValues::default(), WorseIf::Higher), too_few);
        let mut without_control = around(1.5, 1.0);
        without_control.control.clear();
        assert_eq!(
            verdict(&without_control, WorseIf::Higher),
            too_few,
            "nothing shows that the machine was still"
        );
        assert_eq!(Tests::new(&[1], 8).judge(&few, RULE, LAST).repeats, 3);
    }

    #[test]
    fn early_looks_decide_less_and_intervals_agree_with_verdicts() {
        let tests = Tests::new(&[1; 4], 40);
        let rule = Rule { margin: 0.005, ..RULE };
        let look = Look { number: 8, is_last: false };
        let judged = tests.judge(&around(1.02, 1.0), rule, look);
        assert_eq!(judged.reason, Some(InconclusiveReason::NotDecided));
        assert!(judged.ratio.unwrap().low.is_none_or(|low| low < 1.0), "{judged:?}");
        let judged = tests.judge(&around(1.02, 1.0), rule, LAST);
        assert_eq!(judged.verdict, FigureVerdict::Worse);
        assert!(judged.ratio.unwrap().low.unwrap() > 1.0);
    }

    #[test]
    fn heavier_figures_have_more_of_the_error_rate() {
        let tests = Tests::new(&[4, 4, 1, 1], 8);
        assert!((tests.error_rate(4) - 4.0 * tests.error_rate(1)).abs() < 1e-12);
        assert!((2.0 * tests.error_rate(4) + 2.0 * tests.error_rate(1) - ALARM_RATE).abs() < 1e-12);
        let width = |weight| {
            let ratio = tests.judge(&around(1.0, 1.0), Rule { weight, ..RULE }, LAST).ratio.unwrap();
            ratio.high.unwrap() - ratio.low.unwrap()
        };
        assert!(width(1) > 1.1 * width(4), "{} {}", width(1), width(4));
    }

    #[test]
    fn exact_figures_are_judged_by_their_difference_alone() {
        let exact = |head: f64| values(&[100.0; 8], &[head; 8], &[100.0; 8]);
        assert_eq!(verdict(&exact(100.0), WorseIf::Higher).0, FigureVerdict::Equivalent);
        assert_eq!(verdict(&exact(110.0), WorseIf::Higher).0, FigureVerdict::Worse);
    }
}
