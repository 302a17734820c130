//! Verdict on further runs of one figure, from the runs of a history since its last change.
//!
//! The spread between runs of the history, of logarithms, predicts where the mean of further runs lies if nothing changed: Student's
//! prediction interval, pooled with the further runs if there are several. The spread within a run counts for nothing.

use super::bimodal::{Groups, groups};
use crate::comparison::{Logarithms, MIN_REPEATS, MISS_RATE, Rule, WorseIf};
use noise::student;
use results::{Estimate, FigureVerdict, InconclusiveReason, Modes};

/// Verdict on further runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prediction {
    pub(super) verdict: FigureVerdict,
    pub(super) reason: Option<InconclusiveReason>,
    /// Further runs divided by the history, with the interval that the verdict is made by.
    pub(super) ratio: Estimate,
    /// The same with the interval for equivalence.
    pub(super) equivalence_ratio: Estimate,
    /// Standard deviation between runs of the history, as a fraction.
    pub(super) deviation: Option<f64>,
    pub(super) bimodal: Option<Modes>,
    /// Probability that a further run is worse than one of the history.
    pub(super) superiority: f64,
}

/// Judges values of further runs by those of a history. All are above zero, and neither is empty.
pub(super) fn predict(history: &[f64], judged: &[f64], rule: Rule, error_rate: f64) -> Prediction {
    let (before, after) = (logarithms(history), logarithms(judged));
    let change = mean(&after) - mean(&before);
    let spread = Spread::new(&before, &after);
    let within = |level: f64| Logarithms {
        mean: change,
        half: spread.half(level).max(rule.resolution),
        n: after.len(),
    };
    // Each end of the interval for equivalence is passed by chance in MISS_RATE of all cases.
    let (alarm, equivalence) = (within(error_rate), within(2.0 * MISS_RATE));
    let groups = groups(&before);
    let is_worse_higher = rule.worse_if == WorseIf::Higher;
    let superiority = superiority(&after, &before, is_worse_higher);
    let is_beyond_all = superiority <= 0.0 || superiority >= 1.0;
    let inconclusive = |reason| (FigureVerdict::Inconclusive, Some(reason));
    let (verdict, reason) = if before.len() < MIN_REPEATS {
        inconclusive(InconclusiveReason::TooFewRuns)
    } else if groups.is_some() && !(alarm.excludes_zero() && is_beyond_all) {
        inconclusive(InconclusiveReason::Bimodal)
    } else if groups.is_none() && equivalence.is_within(rule.margin.ln_1p()) {
        (FigureVerdict::Equivalent, None)
    } else if !alarm.excludes_zero() {
        inconclusive(InconclusiveReason::NotDecided)
    } else if (change > 0.0) == is_worse_higher {
        (FigureVerdict::Worse, None)
    } else {
        (FigureVerdict::Better, None)
    };
    Prediction {
        verdict,
        reason,
        ratio: alarm.ratio(),
        equivalence_ratio: equivalence.ratio(),
        deviation: deviation(&before),
        bimodal: groups.map(Groups::modes),
        superiority,
    }
}

pub(super) fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation of logarithms, as a fraction of the value; `None` with one value.
pub(super) fn deviation(logarithms: &[f64]) -> Option<f64> {
    crate::interval::variance(logarithms).map(|variance| variance.sqrt().exp_m1())
}

/// Probability that a value of `after` is worse than one of `before`, ties counting half.
pub(super) fn superiority(after: &[f64], before: &[f64], is_worse_higher: bool) -> f64 {
    let worse = |after: f64, before: f64| match after.partial_cmp(&before) {
        Some(std::cmp::Ordering::Greater) => f64::from(u8::from(is_worse_higher)),
        Some(std::cmp::Ordering::Less) => f64::from(u8::from(!is_worse_higher)),
        _ => 0.5,
    };
    let pairs = after.iter().flat_map(|after| before.iter().map(move |before| worse(*after, *before)));
    pairs.sum::<f64>() / (after.len() * before.len()) as f64
}

/// Error of the difference of the means of two groups with the same spread.
pub(super) struct Spread {
    error: f64,
    freedom: f64,
}

impl Spread {
    pub(super) fn new(before: &[f64], after: &[f64]) -> Self {
        let squares = |values: &[f64]| {
            let mean = mean(values);
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        };
        let (n, m) = (before.len() as f64, after.len() as f64);
        let freedom = n + m - 2.0;
        let variance = (squares(before) + squares(after)) / freedom;
        Self { error: (variance * (1.0 / n + 1.0 / m)).sqrt(), freedom }
    }

    /// Half-width of the interval that is missed with this probability; infinite if nothing shows the spread.
    pub(super) fn half(&self, level: f64) -> f64 {
        if self.freedom < 1.0 {
            return f64::INFINITY;
        }
        student::quantile(self.freedom, 1.0 - level / 2.0) * self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { weight: 1, worse_if: WorseIf::Higher, margin: 0.03, resolution: 0.0 };
    const HISTORY: [f64; 10] = [100.0, 101.0, 99.5, 100.4, 99.1, 100.9, 100.2, 99.8, 100.3, 99.6];

    fn predicted(history: &[f64], judged: &[f64], rule: Rule) -> Prediction {
        predict(history, judged, rule, 0.03)
    }

    #[test]
    fn direction_spread_and_margin_decide() {
        use FigureVerdict::{Better, Equivalent, Inconclusive, Worse};
        let verdict = |judged: &[f64], rule| predicted(&HISTORY, judged, rule).verdict;
        assert_eq!(verdict(&[110.0], RULE), Worse);
        assert_eq!(verdict(&[90.0], RULE), Better);
        assert_eq!(verdict(&[90.0], Rule { worse_if: WorseIf::Lower, ..RULE }), Worse);
        assert_eq!(verdict(&[100.4], RULE), Equivalent);
        let narrow = Rule { margin: 0.001, ..RULE };
        assert_eq!(verdict(&[100.4], narrow), Inconclusive);
        assert_eq!(predicted(&HISTORY, &[100.4], narrow).reason, Some(InconclusiveReason::NotDecided));
        assert_eq!(predicted(&HISTORY[..3], &[150.0], RULE).reason, Some(InconclusiveReason::TooFewRuns));
        let interval = predicted(&HISTORY, &[103.0], RULE).ratio;
        assert!(interval.low.unwrap() > 1.0, "the interval agrees with the verdict: {interval:?}");
    }

    #[test]
    fn bimodal_history_is_judged_by_runs_beyond_all_of_it() {
        let history: Vec<f64> =
            (0..20).map(|run| if run % 3 == 0 { 120.0 } else { 100.0 } + 0.1 * f64::from(run % 7)).collect();
        let among = predicted(&history, &[120.3, 120.1, 120.2], RULE);
        assert_eq!(among.reason, Some(InconclusiveReason::Bimodal));
        let modes = among.bimodal.unwrap();
        assert_eq!((modes.lower_runs, modes.upper_runs), (13, 7));
        let beyond = predicted(&history, &[150.0, 151.0, 149.0], RULE);
        assert_eq!((beyond.verdict, beyond.superiority), (FigureVerdict::Worse, 1.0));
    }

    #[test]
    fn superiority_counts_pairs() {
        assert_eq!(superiority(&[3.0, 1.0], &[2.0, 1.0], true), (1.0 + 1.0 + 0.0 + 0.5) / 4.0);
        assert_eq!(superiority(&[3.0], &[2.0], false), 0.0);
    }
}
