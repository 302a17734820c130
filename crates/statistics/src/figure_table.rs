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
        self.contrast(&[(1.0, with), (-1.0, without)], resolution)
            .or_else(|| plain_difference([&self.cells[with], &self.cells[without]], resolution))
    }

    /// Slope of the line through the means of cells, by least squares, over the quantity of each. Its error is the noise of the
    /// cells and not their distance from the line, so that a curve makes it neither wider nor narrower. `None` if a cell is not
    /// in the model of the noise.
    pub(crate) fn slope(&self, cells: &[(f64, usize)], resolution: f64) -> Option<Difference> {
        let center = cells.iter().map(|(quantity, _)| quantity).sum::<f64>() / cells.len() as f64;
        let squares: f64 = cells.iter().map(|(quantity, _)| (quantity - center).powi(2)).sum();
        let factors = cells.iter().map(|(quantity, cell)| ((quantity - center) / squares, *cell));
        self.contrast(&factors.collect::<Vec<_>>(), resolution)
    }

    /// The sum of the means of cells, each times its factor. `None` if a cell is not in the model of the noise.
    fn contrast(&self, cells: &[(f64, usize)], resolution: f64) -> Option<Difference> {
        let (choices, repeats) = (self.choices(cells, |value| value)?, self.noise.of_repeats()?);
        let contrasts = choices.into_iter().map(|sides| Contrast::new(sides, repeats));
        let best = contrasts.min_by(|one, other| one.sum.variance.total_cmp(&other.sum.variance))?;
        let (difference, sum) = best.tested();
        let estimate = best.interval(self.noise.allowance(), resolution);
        Some(Difference::new(estimate, Some(self.p_value(difference, sum)), best.sum.freedom()))
    }

    /// The relative change from one cell to another, as a fraction. `None` if a value has no logarithm.
    pub(crate) fn change(&self, with: usize, without: usize) -> Option<Difference> {
        let sides = [&self.cells[with], &self.cells[without]];
        if sides.iter().any(|values| values.values().any(|value| *value <= 0.0)) {
            return None;
        }
        let (Some(choices), Some(repeats)) =
            (self.choices(&[(1.0, with), (-1.0, without)], f64::ln), self.noise.of_repeats())
        else {
            let logarithms = sides.map(|values| read(values, f64::ln));
            let plain = plain_difference(logarithms.each_ref(), 0.0)?;
            return Some(Difference {
                estimate: plain.estimate.map(f64::exp_m1),
                is_relative: true,
                ..plain
            });
        };
        let ratios = choices.iter().map(|sides| (Sum::of_logarithms(sides, repeats), sides));
        let (sum, sides) = ratios.min_by(|(one, _), (other, _)| one.variance.total_cmp(&other.variance))?;
        let difference = mean(&sides[0].values) - mean(&sides[1].values);
        let half = self.half_width(sum);
        let estimate = Estimate {
            estimate: difference,
            low: Some(difference - half),
            high: Some(difference + half),
            n: least_trials(sides),
            alone: None,
        };
        let p_value = self.p_value(difference, sum);
        let estimate = estimate.map(f64::exp_m1);
        Some(Difference { is_relative: true, ..Difference::new(estimate, Some(p_value), sum.freedom()) })
    }

    /// Sides of a contrast of these cells with their factors: of the repeats that all have, and of all. `None` if a cell is not
    /// in the model of the noise.
    fn choices(&self, cells: &[(f64, usize)], reading: fn(f64) -> f64) -> Option<Vec<Vec<Side>>> {
        let side = |(factor, cell): &(f64, usize)| {
            let values = read(&self.cells[*cell], reading);
            Some(Side { factor: *factor, trials: self.noise.of_trials(*cell)?, values })
        };
        let all = cells.iter().map(side).collect::<Option<Vec<Side>>>()?;
        let choices = [in_common(&all), all];
        Some(choices.into_iter().filter(|sides| least_trials(sides) >= 2).collect())
    }

    /// Half-width of the interval of a figure with this variance.
    fn half_width(&self, sum: Sum) -> f64 {
        self.noise.allowance() * student::t_95(sum.freedom()) * sum.variance.sqrt()
    }

    fn p_value(&self, difference: f64, sum: Sum) -> f64 {
        let error = self.noise.allowance_of_tests() * sum.variance.sqrt();
        student::two_sided(difference / error, sum.freedom())
    }
}

/// The difference of two cells by their own noise, with the p-value of Student's test.
fn plain_difference(sides: [&Values; 2], resolution: f64) -> Option<Difference> {
    let estimate = interval::difference(sides[0], sides[1], resolution)?;
    let p_value = interval::p_value(sides[0], sides[1]);
    Some(Difference::new(estimate, p_value, interval::freedom(sides[0], sides[1])))
}

/// A cell in a contrast.
#[derive(Clone)]
struct Side {
    factor: f64,
    trials: Spread,
    values: Values,
}

/// The sides with the values of the repeats that all of them have.
fn in_common(sides: &[Side]) -> Vec<Side> {
    let is_common = |repeat: &usize| sides.iter().all(|side| side.values.contains_key(repeat));
    let mut sides_in_common = sides.to_vec();
    sides_in_common.iter_mut().for_each(|side| side.values.retain(|repeat, _| is_common(repeat)));
    sides_in_common
}

fn least_trials(sides: &[Side]) -> usize {
    sides.iter().map(|side| side.values.len()).min().unwrap_or(0)
}

fn read(values: &Values, reading: impl Fn(f64) -> f64) -> Values {
    values.iter().map(|(repeat, value)| (*repeat, reading(*value))).collect()
}

fn mean(values: &Values) -> f64 {
    values.values().sum::<f64>() / values.len() as f64
}

/// How far an interval reaches above its mean, as a fraction. A skewed distribution reaches further, but with
/// few trials the logarithm may reach anywhere.
fn upwards(half: f64) -> f64 {
    half.exp_m1().min(interval::MAX_SIDE_WIDTH * half)
}

/// Factor for the variance of the repeats' effects in a contrast to which the mean of each side contributes a part: all trials
/// of a repeat share its effect.
fn repeat_factor(sides: &[Side], parts: &[f64]) -> f64 {
    let mut by_repeat = Values::new();
    for (side, part) in sides.iter().zip(parts) {
        let of_trial = part / side.values.len() as f64;
        side.values.keys().for_each(|repeat| *by_repeat.entry(*repeat).or_default() += of_trial);
    }
    by_repeat.values().map(|part| part * part).sum()
}

impl Sum {
    /// Variance of a contrast to which the mean of each side contributes a part.
    fn of_parts(sides: &[Side], parts: &[f64], repeats: Spread) -> Self {
        let own = sides.iter().zip(parts);
        own.fold(Self::default(), |sum, (side, part)| {
            sum.with(side.trials, part * part / side.values.len() as f64)
        })
        .with(repeats, repeat_factor(sides, parts))
    }

    /// Variance of a contrast of logarithms.
    fn of_logarithms(sides: &[Side], repeats: Spread) -> Self {
        let factors: Vec<f64> = sides.iter().map(|side| side.factor).collect();
        Self::of_parts(sides, &factors, repeats)
    }
}

/// A sum of means, each times its factor.
struct Contrast {
    sides: Vec<Side>,
    /// Mean of each side times its factor.
    parts: Vec<f64>,
    repeats: Spread,
    sum: Sum,
}

impl Contrast {
    fn new(sides: Vec<Side>, repeats: Spread) -> Self {
        let parts: Vec<f64> = sides.iter().map(|side| side.factor * mean(&side.values)).collect();
        let sum = Sum::of_parts(&sides, &parts, repeats);
        Self { sides, parts, repeats, sum }
    }

    /// Combines the intervals of the means on their logarithms, which are skewed (G. Y. Zou and A. Donner,
    /// 2008), with the repeats' effect on the sum.
    fn interval(&self, allowance: f64, resolution: f64) -> Estimate {
        let t = allowance * student::t_95(self.sum.freedom());
        let repeats = t * t * self.repeats.variance * repeat_factor(&self.sides, &self.parts);
        let (mut below, mut above) = (repeats, repeats);
        for (side, part) in self.sides.iter().zip(&self.parts) {
            let half = t * (side.trials.variance / side.values.len() as f64).sqrt();
            let (down, up) = (part * -(-half).exp_m1(), part * upwards(half));
            let (down, up) = if *part < 0.0 { (up, down) } else { (down, up) };
            below += down * down;
            above += up * up;
        }
        let estimate = self.parts.iter().sum::<f64>();
        Estimate {
            estimate,
            low: Some(estimate - below.sqrt().max(resolution)),
            high: Some(estimate + above.sqrt().max(resolution)),
            n: least_trials(&self.sides),
            alone: None,
        }
    }

    /// What is tested, and its variance. Of two means their logarithms, in which effects common to a repeat cancel; those of more
    /// need not be on a line where the means are.
    fn tested(&self) -> (f64, Sum) {
        if self.sides.len() > 2 {
            return (self.parts.iter().sum(), self.sum);
        }
        let logarithm = |side: &Side| side.factor * mean(&read(&side.values, f64::ln));
        let sum = Sum::of_logarithms(&self.sides, self.repeats);
        (self.sides.iter().map(logarithm).sum(), sum)
    }
}

#[cfg(test)]
#[path = "few_tests.rs"]
mod few_tests;
