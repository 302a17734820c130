//! One figure in all cells of a run: means and differences with their intervals.
//!
//! Intervals estimate the noise of a trial from all cells ([`mod@noise`]). With too few cells or values
//! for that, each cell uses its own ([`crate::interval`]). Docs: docs/decisions/0001-intervals.md.

use crate::interval;
use noise::student;
use noise::{Noise, Place, Spread, Values};
use results::Estimate;

/// A figure in the trials of each cell of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct FigureTable {
    cells: Vec<Values>,
    noise: Noise,
}

/// A difference and its p-value (`p_value`): how likely a difference this large is by chance if there is none.
/// The p-value is `None` if there are too few trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    pub estimate: Estimate,
    pub p_value: Option<f64>,
    /// Degrees of freedom of the interval.
    pub freedom: f64,
    /// True for a relative change, whose interval is one of logarithms.
    pub is_relative: bool,
}

impl Difference {
    /// A difference in its unit.
    pub(crate) fn new(estimate: Estimate, p_value: Option<f64>, freedom: f64) -> Self {
        Self { estimate, p_value, freedom, is_relative: false }
    }

    /// The estimate for a difference that is not shown among all that a run tests. If its interval excludes zero, the
    /// interval of one less this level takes its place: it holds for all of these differences together. Zero is never excluded
    /// there, since the test at this level does not exclude it; the test is of logarithms, so that both can differ by a little.
    /// `alone` is kept of the greatest of several, whose interval already holds for all of them.
    pub(crate) fn not_shown(&self, level: f64) -> Estimate {
        let own = self.estimate;
        let (Some(low), Some(high)) = (own.low, own.high) else { return own };
        if !own.excludes_zero() {
            return own;
        }
        let factor = student::quantile(self.freedom, 1.0 - level / 2.0) / student::t_95(self.freedom);
        let further = |end: f64| match self.is_relative {
            true => {
                let center = own.estimate.ln_1p();
                (center + (end.ln_1p() - center) * factor).exp_m1()
            }
            false => own.estimate + (end - own.estimate) * factor,
        };
        let alone = own.alone.or(Some([low, high]));
        let (low, high) = (further(low).min(0.0), further(high).max(0.0));
        Estimate { low: Some(low), high: Some(high), alone, ..own }
    }
}

/// A variance with its degrees of freedom; variances can be added.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    variance: f64,
    /// Sum over the parts: each part squared over its degrees of freedom (F. E. Satterthwaite, Biometrics
    /// Bulletin 2 (1946)).
    parts: f64,
    /// The same for what is shared: such parts err together, so their roots are added.
    shared_root: f64,
}

impl Sum {
    fn with(self, spread: Spread, factor: f64) -> Self {
        let variance = spread.variance * factor;
        let part = variance * variance / spread.freedom;
        Self {
            variance: self.variance + variance,
            parts: self.parts + part * (1.0 - spread.shared),
            shared_root: self.shared_root + (part * spread.shared).sqrt(),
        }
    }

    fn freedom(self) -> f64 {
        let parts = self.parts + self.shared_root * self.shared_root;
        if parts > 0.0 { self.variance * self.variance / parts } else { 1.0 }
    }
}

impl FigureTable {
    pub(crate) fn new(cells: Vec<(Place, Values)>) -> Self {
        let placed: Vec<(Place, &Values)> = cells.iter().map(|(place, values)| (*place, values)).collect();
        let noise = Noise::new(&placed);
        Self { noise, cells: cells.into_iter().map(|(_, values)| values).collect() }
    }

    pub(crate) fn values(&self, cell: usize) -> &Values {
        &self.cells[cell]
    }

    /// The mean of a cell's values. `resolution`: see [`interval::mean`].
    pub(crate) fn mean(&self, cell: usize, resolution: f64) -> Option<Estimate> {
        let values: Vec<f64> = self.cells[cell].values().copied().collect();
        let Some(parts) = self.noise.of_cell(cell) else { return interval::mean(&values, resolution) };
        let n = values.len();
        let estimate = values.iter().sum::<f64>() / n as f64;
        let sum = parts.into_iter().fold(Sum::default(), |sum, part| sum.with(part, 1.0 / n as f64));
        let half = self.half_width(sum);
        let (low, high) = (estimate * (-half).exp(), estimate * (1.0 + upwards(half)));
        Some(Estimate {
            estimate,
            low: Some(low.min(estimate - resolution)),
            high: Some(high.max(estimate + resolution)),
            n,
            alone: None,
        })
    }

    /// The difference between the means of two cells.
    pub(crate) fn difference(&self, with: usize, without: usize, resolution: f64) -> Option<Difference> {
        let sides = [&self.cells[with], &self.cells[without]];
        let (Some(trials), Some(repeats)) = (self.spreads(with, without), self.noise.of_repeats()) else {
            return plain_difference(sides, resolution);
        };
        let choices = [paired(sides), sides.map(Clone::clone)];
        let choices = choices.iter().filter(|sides| sides.iter().all(|values| values.len() >= 2));
        let contrasts = choices.map(|sides| Contrast::new(sides, trials, repeats));
        let best = contrasts.min_by(|one, other| one.sum.variance.total_cmp(&other.sum.variance))?;
        let (difference, sum) = best.of_logarithms();
        let estimate = best.interval(self.noise.allowance(), resolution);
        Some(Difference::new(estimate, Some(self.p_value(difference, sum)), best.sum.freedom()))
    }

    /// The relative change from one cell to another, as a fraction. `None` if a value has no logarithm.
    pub(crate) fn change(&self, with: usize, without: usize) -> Option<Difference> {
        let sides = [&self.cells[with], &self.cells[without]];
        if sides.iter().any(|values| values.values().any(|value| *value <= 0.0)) {
            return None;
        }
        let logarithms =
            sides.map(|values| values.iter().map(|(repeat, value)| (*repeat, value.ln())).collect());
        let (Some(trials), Some(repeats)) = (self.spreads(with, without), self.noise.of_repeats()) else {
            let plain = plain_difference(logarithms.each_ref(), 0.0)?;
            return Some(Difference {
                estimate: plain.estimate.map(f64::exp_m1),
                is_relative: true,
                ..plain
            });
        };
        let choices = [paired(logarithms.each_ref()), logarithms];
        let choices = choices.iter().filter(|sides| sides.iter().all(|values| values.len() >= 2));
        let ratios = choices.map(|sides| (Sum::of_ratio(sides, trials, repeats), sides));
        let (sum, sides) = ratios.min_by(|(one, _), (other, _)| one.variance.total_cmp(&other.variance))?;
        let difference = mean(&sides[0]) - mean(&sides[1]);
        let half = self.half_width(sum);
        let estimate = Estimate {
            estimate: difference,
            low: Some(difference - half),
            high: Some(difference + half),
            n: sides[0].len().min(sides[1].len()),
            alone: None,
        };
        let p_value = self.p_value(difference, sum);
        let estimate = estimate.map(f64::exp_m1);
        Some(Difference { is_relative: true, ..Difference::new(estimate, Some(p_value), sum.freedom()) })
    }

    /// Slope of the line through the means of cells, by least squares, over the quantity of each. `None` with
    /// more than two trials in a cell, whose slopes in each repeat show their noise, and if a cell is not in the
    /// model of the noise or lacks a repeat of another.
    pub(crate) fn slope(&self, cells: &[(f64, usize)], resolution: f64) -> Option<Difference> {
        let repeats = &self.cells[cells.first()?.1];
        if !self.noise.is_of_few()
            || cells.iter().any(|(_, cell)| !self.cells[*cell].keys().eq(repeats.keys()))
        {
            return None;
        }
        let n = repeats.len();
        let center = cells.iter().map(|(quantity, _)| quantity).sum::<f64>() / cells.len() as f64;
        let squares: f64 = cells.iter().map(|(quantity, _)| (quantity - center).powi(2)).sum();
        let (mut estimate, mut sum) = (0.0, Sum::default());
        for (quantity, cell) in cells {
            let part = (quantity - center) / squares * mean(&self.cells[*cell]);
            estimate += part;
            sum = sum.with(self.noise.of_trials(*cell)?, part * part / n as f64);
        }
        let sum = sum.with(self.noise.of_repeats()?, estimate * estimate / n as f64);
        let half = self.half_width(sum).max(resolution);
        let p_value = self.p_value(estimate, sum);
        let estimate =
            Estimate { estimate, low: Some(estimate - half), high: Some(estimate + half), n, alone: None };
        Some(Difference::new(estimate, Some(p_value), sum.freedom()))
    }

    /// Half-width of the interval of a figure with this variance.
    fn half_width(&self, sum: Sum) -> f64 {
        self.noise.allowance() * student::t_95(sum.freedom()) * sum.variance.sqrt()
    }

    fn p_value(&self, difference: f64, sum: Sum) -> f64 {
        let error = self.noise.allowance_of_tests() * sum.variance.sqrt();
        student::two_sided(difference / error, sum.freedom())
    }

    fn spreads(&self, with: usize, without: usize) -> Option<[Spread; 2]> {
        Some([self.noise.of_trials(with)?, self.noise.of_trials(without)?])
    }
}

/// The difference of two cells by their own noise, with the p-value of Student's test.
fn plain_difference(sides: [&Values; 2], resolution: f64) -> Option<Difference> {
    let estimate = interval::difference(sides[0], sides[1], resolution)?;
    let p_value = interval::p_value(sides[0], sides[1]);
    Some(Difference::new(estimate, p_value, interval::freedom(sides[0], sides[1])))
}

/// Values of the repeats that both sides have.
fn paired(sides: [&Values; 2]) -> [Values; 2] {
    let common = |one: &Values, other: &Values| -> Values {
        one.iter()
            .filter(|(repeat, _)| other.contains_key(repeat))
            .map(|(repeat, value)| (*repeat, *value))
            .collect()
    };
    [common(sides[0], sides[1]), common(sides[1], sides[0])]
}

fn mean(values: &Values) -> f64 {
    values.values().sum::<f64>() / values.len() as f64
}

/// How far an interval reaches above its mean, as a fraction. A skewed distribution reaches further, but with
/// few trials the logarithm may reach anywhere.
fn upwards(half: f64) -> f64 {
    half.exp_m1().min(interval::MAX_SIDE_WIDTH * half)
}

/// Factor for the variance of the repeats' effects: the sum of squares of their coefficients in a difference
/// of two means with these factors.
fn repeat_factor(sides: &[Values; 2], factors: [f64; 2]) -> f64 {
    let part = |side: usize, repeat: &usize| {
        if sides[side].contains_key(repeat) { factors[side] / sides[side].len() as f64 } else { 0.0 }
    };
    let only_right = sides[1].keys().filter(|repeat| !sides[0].contains_key(repeat));
    sides[0].keys().chain(only_right).map(|repeat| (part(0, repeat) - part(1, repeat)).powi(2)).sum()
}

impl Sum {
    /// Variance of the difference of two means of logarithms.
    fn of_ratio(sides: &[Values; 2], trials: [Spread; 2], repeats: Spread) -> Self {
        let own = sides.iter().zip(trials);
        own.fold(Self::default(), |sum, (values, spread)| sum.with(spread, 1.0 / values.len() as f64))
            .with(repeats, repeat_factor(sides, [1.0, 1.0]))
    }
}

struct Contrast<'a> {
    sides: &'a [Values; 2],
    trials: [Spread; 2],
    repeats: Spread,
    means: [f64; 2],
    sum: Sum,
}

impl<'a> Contrast<'a> {
    fn new(sides: &'a [Values; 2], trials: [Spread; 2], repeats: Spread) -> Self {
        let means = sides.each_ref().map(mean);
        let mut sum = Sum::default().with(repeats, repeat_factor(sides, means));
        for side in 0..2 {
            sum = sum.with(trials[side], means[side] * means[side] / sides[side].len() as f64);
        }
        Self { sides, trials, repeats, means, sum }
    }

    /// Combines the intervals of both means on their logarithms, which are skewed (G. Y. Zou and A. Donner,
    /// 2008), with the repeats' effect on the difference.
    fn interval(&self, allowance: f64, resolution: f64) -> Estimate {
        let t = allowance * student::t_95(self.sum.freedom());
        let reach = |side: usize| {
            let half = t * (self.trials[side].variance / self.sides[side].len() as f64).sqrt();
            (self.means[side] * -(-half).exp_m1(), self.means[side] * upwards(half))
        };
        let ((with_below, with_above), (without_below, without_above)) = (reach(0), reach(1));
        let repeats = t * t * self.repeats.variance * repeat_factor(self.sides, self.means);
        let below = (with_below.powi(2) + without_above.powi(2) + repeats).sqrt().max(resolution);
        let above = (with_above.powi(2) + without_below.powi(2) + repeats).sqrt().max(resolution);
        let estimate = self.means[0] - self.means[1];
        Estimate {
            estimate,
            low: Some(estimate - below),
            high: Some(estimate + above),
            n: self.sides[0].len().min(self.sides[1].len()),
            alone: None,
        }
    }

    /// The difference of the logarithms, in which effects common to a repeat cancel, and its variance.
    fn of_logarithms(&self) -> (f64, Sum) {
        let logarithm =
            |values: &Values| values.values().map(|value| value.ln()).sum::<f64>() / values.len() as f64;
        let difference = logarithm(&self.sides[0]) - logarithm(&self.sides[1]);
        (difference, Sum::of_ratio(self.sides, self.trials, self.repeats))
    }
}

#[cfg(test)]
#[path = "few_tests.rs"]
mod few_tests;
