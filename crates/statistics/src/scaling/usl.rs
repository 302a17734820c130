//! The Universal Scalability Law (N. J. Gunther, "A general theory of computational scalability based on
//! rational functions", 2008), fitted to trials: `X(N) = λ·N / D`, `D = 1 + σ·(N − 1) + κ·N·(N − 1)`.
//!
//! N is the factor's value in its own unit, so λ is the throughput of one core, worker or replica. Below one
//! core the law stays plausible: multiplied out, `D = (1 − σ) + (σ − κ)·N + κ·N²`, a curve through the origin
//! for any σ from 0 to 1. Only λ is extrapolated if no values on both sides of 1 were measured, and its
//! interval shows by how much.
//!
//! Fit: least squares on logarithms, weighted by the noise of each value's trials, with a separate level per
//! repeat. What all trials of a repeat have in common then moves λ, but not the shape. Given σ and κ the
//! levels follow, so two bounded parameters remain: a grid finds their region, and is refined around its best
//! point. The sum of squares is a quadratic form of the logarithms of D, computed once, so a point costs one
//! logarithm per value. Intervals are profile likelihoods with Student's t; at a bound they are one-sided.

use super::lack_of_fit;
use crate::interval::ALLOWANCE;
use noise::student;
use results::{Estimate, LackOfFit, ScalingParameters};

/// The pair of σ and κ.
type Shape = [f64; 2];
const SIGMA: usize = 0;
const KAPPA: usize = 1;

/// Intervals of the first grid, per parameter.
const GRID: usize = 8;
/// Distance between points at which the refinement ends, as a share of the parameter's range.
const MIN_STEP: f64 = 1e-8;
/// Moves of the refinement at most: hundreds are usual.
const MAX_MOVES: usize = 100_000;
/// Golden-section steps to search along one parameter.
const SECTIONS: usize = 30;
/// Bisection steps to find an end of an interval.
const HALVINGS: usize = 20;
/// Minimum standard deviation of the logarithm of a throughput.
pub(super) const MIN_DEVIATION: f64 = 1e-4;

/// Throughput in one trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    /// The factor's value.
    pub at: f64,
    /// Number of the repeat, without gaps.
    pub repeat: usize,
    /// Natural logarithm of the throughput.
    pub logarithm: f64,
    /// Reciprocal of the variance, up to a factor.
    pub weight: f64,
}

/// A fitted law.
#[derive(Clone, Copy, Debug)]
pub(super) struct FittedLaw {
    pub parameters: ScalingParameters,
    pub peak: Option<Estimate>,
    pub lack_of_fit: Option<LackOfFit>,
    pub deviation: Option<f64>,
}

/// Fits the law to trials at three values or more.
pub(super) fn fit(observations: &[Observation]) -> Option<FittedLaw> {
    let problem = Problem::new(observations);
    let best = problem.best()?;
    let freedom = observations.len() as f64 - problem.weights.len() as f64 - 2.0;
    let variance = (freedom >= 1.0).then(|| (best.sum / freedom).max(MIN_DEVIATION * MIN_DEVIATION));
    let within = variance.map(|variance| Within {
        problem: &problem,
        best,
        excess: (student::t_95(freedom) * ALLOWANCE).powi(2) * variance,
    });
    let estimate = |value: f64, ends: Option<(f64, f64)>| Estimate {
        estimate: value,
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high).filter(|high| high.is_finite()),
        n: observations.len(),
        alone: None,
    };
    let [sigma, kappa] = best.shape;
    let level = within.as_ref().zip(variance).map(|(within, variance)| within.level(variance));
    let parameters = ScalingParameters {
        lambda: estimate(best.level.exp(), level.map(|(low, high)| (low.exp(), high.exp()))),
        sigma: estimate(sigma, within.as_ref().map(Within::sigma)),
        kappa: estimate(kappa, within.as_ref().map(Within::kappa)),
    };
    let has_peak = kappa > 0.0 && sigma < 1.0 && parameters.kappa.low.is_some_and(|low| low > 0.0);
    let peak = within.as_ref().filter(|_| has_peak).map(|within| {
        let peak = ((1.0 - sigma) / kappa).sqrt();
        estimate(peak, Some(within.peak(peak)))
    });
    let free = usize::from(sigma > 0.0 && sigma < 1.0) + usize::from(kappa > 0.0);
    Some(FittedLaw {
        parameters,
        peak: peak.filter(|peak| peak.high.is_some()),
        lack_of_fit: lack_of_fit::lack_of_fit(observations, problem.weights.len(), best.sum, free),
        deviation: variance.map(f64::sqrt),
    })
}

/// The trials as a quadratic form. A row has a trial's logarithm of throughput per unit, and a 1 for its value: its
/// product with the terms of a shape is the trial's level.
struct Problem {
    /// The factor's values.
    values: Vec<f64>,
    /// Sum of the weights of each repeat.
    weights: Vec<f64>,
    /// Mean row of each repeat.
    means: Vec<Vec<f64>>,
    /// Weighted sum of the products of rows, without the means of their repeats.
    squares: Vec<Vec<f64>>,
}

/// A shape with its fit.
#[derive(Clone, Copy, Debug)]
struct Point {
    shape: Shape,
    /// Weighted sum of squares.
    sum: f64,
    /// Mean level of the repeats: the logarithm of λ.
    level: f64,
}

impl Problem {
    fn new(observations: &[Observation]) -> Self {
        let mut values: Vec<f64> = observations.iter().map(|one| one.at).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let row = |one: &Observation| {
            let mut row = vec![one.logarithm - one.at.ln()];
            row.extend(values.iter().map(|at| f64::from(u8::from(*at == one.at))));
            row
        };
        let repeats = observations.iter().map(|one| one.repeat + 1).max().unwrap_or(0);
        let mut weights = vec![0.0; repeats];
        observations.iter().for_each(|one| weights[one.repeat] += one.weight);
        let mut means = vec![vec![0.0; values.len() + 1]; repeats];
        for one in observations {
            let share = one.weight / weights[one.repeat];
            means[one.repeat].iter_mut().zip(row(one)).for_each(|(mean, term)| *mean += share * term);
        }
        let mut squares = vec![vec![0.0; values.len() + 1]; values.len() + 1];
        for one in observations {
            let rest: Vec<f64> =
                row(one).iter().zip(&means[one.repeat]).map(|(term, mean)| term - mean).collect();
            for (squares, by) in squares.iter_mut().zip(&rest) {
                squares.iter_mut().zip(&rest).for_each(|(square, term)| *square += one.weight * by * term);
            }
        }
        Self { values, weights, means, squares }
    }

    /// 1, and the logarithm of D at each value. `None` if D is not positive.
    fn terms(&self, [sigma, kappa]: Shape) -> Option<Vec<f64>> {
        let mut terms = Vec::with_capacity(self.values.len() + 1);
        terms.push(1.0);
        for at in &self.values {
            let denominator = 1.0 + (sigma + kappa * at) * (at - 1.0);
            if denominator <= 1e-9 {
                return None;
            }
            terms.push(denominator.ln());
        }
        Some(terms)
    }

    fn sum_of(&self, terms: &[f64]) -> f64 {
        let mut sum = 0.0;
        for (row, term) in self.squares.iter().zip(terms) {
            sum += term * product(row, terms);
        }
        sum
    }

    fn sum(&self, shape: Shape) -> f64 {
        self.terms(shape).map_or(f64::INFINITY, |terms| self.sum_of(&terms))
    }

    fn point(&self, shape: Shape) -> Option<Point> {
        let terms = self.terms(shape)?;
        let levels: f64 = self.means.iter().map(|mean| product(mean, &terms)).sum();
        Some(Point { shape, sum: self.sum_of(&terms), level: levels / self.means.len() as f64 })
    }

    fn greatest(&self) -> f64 {
        self.values.last().copied().unwrap_or(1.0)
    }

    /// The shape at a place of the search, two numbers from 0 to 1. The first is the growth of D up to the greatest
    /// value, which trials show best. The second is the share of κ in that growth, up to a growth of 1.
    fn shape_at(&self, [growth, crosstalk]: [f64; 2]) -> Shape {
        // Squared, since σ is mostly far below 1. A growth of 1 is a place of the grid, so that a σ of 1 is exact.
        let growth = unbounded(growth).powi(2);
        let sigma = (1.0 - crosstalk) * growth.min(1.0);
        [sigma, (growth - sigma) / self.greatest()]
    }

    fn place_of(&self, [sigma, kappa]: Shape) -> [f64; 2] {
        let growth = sigma + kappa * self.greatest();
        let crosstalk = if growth > 0.0 { 1.0 - sigma / growth.min(1.0) } else { 0.0 };
        [growth.sqrt() / (1.0 + growth.sqrt()), crosstalk]
    }

    fn best(&self) -> Option<Point> {
        let sum = |place: [f64; 2]| self.sum(self.shape_at(place));
        let at = |index: usize| index as f64 / GRID as f64;
        let places = (0..=GRID).flat_map(|row| (0..=GRID).map(move |column| [at(row), at(column)]));
        let (start, _) =
            places.map(|place| (place, sum(place))).min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        self.point(self.shape_at(refine(start, sum)))
    }
}

/// Intervals: all values whose best fit is worse than the overall best by no more than noise allows.
struct Within<'a> {
    problem: &'a Problem,
    best: Point,
    /// Allowed excess of the sum of squares.
    excess: f64,
}

impl Within<'_> {
    fn limit(&self) -> f64 {
        self.best.sum + self.excess
    }

    /// True if a shape on a line is in the region.
    fn meets(&self, line: impl Fn(f64) -> Shape) -> bool {
        reaches(self.limit(), |place| self.problem.sum(line(place)))
    }

    fn sigma(&self) -> (f64, f64) {
        let kappa = |place: f64| unbounded(place) / self.problem.greatest().powi(2);
        let holds = |sigma: f64| self.meets(|place| [sigma, kappa(place)]);
        let value = self.best.shape[SIGMA];
        let end = |bound: f64| if holds(bound) { bound } else { boundary(value, bound, holds) };
        (end(0.0), end(1.0))
    }

    fn kappa(&self) -> (f64, f64) {
        let holds = |kappa: f64| self.meets(|sigma| [sigma, kappa]);
        let value = self.best.shape[KAPPA];
        let low = if holds(0.0) { 0.0 } else { boundary(value, 0.0, holds) };
        let mut beyond = f64::max(value, 1e-6 / self.problem.greatest().powi(2)) * 2.0;
        while holds(beyond) && beyond < 1e9 {
            beyond *= 2.0;
        }
        (low, if beyond < 1e9 { boundary(value, beyond, holds) } else { f64::INFINITY })
    }

    /// Interval of the logarithm of λ: noise of the trials, plus differences between repeats beyond it.
    fn level(&self, variance: f64) -> (f64, f64) {
        let count = self.problem.weights.len() as f64;
        let by_trials = self.problem.weights.iter().map(|weight| 1.0 / weight).sum::<f64>() / (count * count);
        // How far the mean level of a shape's repeats may be from its best: each shape leaves a part of the excess.
        let reach = |sign: f64| {
            let distance = |place: [f64; 2]| {
                let point = self.problem.point(self.problem.shape_at(place));
                point.filter(|point| point.sum <= self.limit()).map_or(f64::NEG_INFINITY, |point| {
                    sign * (point.level - self.best.level) + (by_trials * (self.limit() - point.sum)).sqrt()
                })
            };
            let start = self.problem.place_of(self.best.shape);
            distance(refine(start, |place| -distance(place)))
        };
        let between = self.between_repeats(variance * by_trials);
        (self.best.level - reach(-1.0).hypot(between), self.best.level + reach(1.0).hypot(between))
    }

    /// Half-width of the mean level's interval that comes from differences between repeats beyond the noise
    /// of their trials.
    fn between_repeats(&self, by_trials: f64) -> f64 {
        let count = self.problem.weights.len() as f64;
        let Some(terms) = self.problem.terms(self.best.shape).filter(|_| count >= 2.0) else { return 0.0 };
        let levels = self.problem.means.iter().map(|mean| product(mean, &terms));
        let seen = levels.map(|level| (level - self.best.level).powi(2)).sum::<f64>() / (count - 1.0);
        ALLOWANCE * student::t_95(count - 1.0) * (seen / count - by_trials).max(0.0).sqrt()
    }

    /// Interval of the value beyond which throughput falls: `N* = √((1 − σ) / κ)`.
    fn peak(&self, peak: f64) -> (f64, f64) {
        let holds = |peak: f64| self.meets(|sigma| [sigma, (1.0 - sigma) / (peak * peak)]);
        let reach = |factor: f64| {
            let mut beyond = peak * factor;
            while holds(beyond) && (1e-9..1e9).contains(&beyond) {
                beyond *= factor;
            }
            if (1e-9..1e9).contains(&beyond) { boundary(peak, beyond, holds) } else { f64::INFINITY }
        };
        let low = reach(0.5);
        (if low.is_finite() { low } else { 0.0 }, reach(2.0))
    }
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (one, other) in one.iter().zip(other) {
        sum += one * other;
    }
    sum
}

/// A number from 0 to infinity for one from 0 to 1.
fn unbounded(place: f64) -> f64 {
    place / (1.0 - place).max(1e-9)
}

/// The best place near a good one: moves to the best of the neighbours while one is better, then halves their
/// distance.
fn refine(mut place: [f64; 2], function: impl Fn([f64; 2]) -> f64) -> [f64; 2] {
    let mut least = function(place);
    let mut step = 0.5 / GRID as f64;
    for _ in 0..MAX_MOVES {
        if step < MIN_STEP {
            break;
        }
        let mut found = None;
        for [x, y] in [[-1, 0], [1, 0], [0, -1], [0, 1], [-1, 1], [1, -1], [-1, -1], [1, 1]] {
            let near = [f64::from(x) * step, f64::from(y) * step];
            let near = [0, 1].map(|index: usize| (place[index] + near[index]).clamp(0.0, 1.0));
            let value = function(near);
            if value < least {
                (least, found) = (value, Some(near));
            }
        }
        match found {
            Some(better) => place = better,
            None => step /= 2.0,
        }
    }
    place
}

/// Bisects for the boundary of a condition that holds at `inside` and not at `outside`.
fn boundary(mut inside: f64, mut outside: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(inside, outside);
        if holds(middle) { inside = middle } else { outside = middle }
    }
    outside
}

/// True if a function of a number from 0 to 1 falls to a limit somewhere: a grid, and golden-section search
/// around its best point.
fn reaches(limit: f64, function: impl Fn(f64) -> f64) -> bool {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let at = |index: usize| index as f64 / GRID as f64;
    let grid = (0..=GRID).map(|index| (index, function(at(index))));
    let Some((best, least)) = grid.min_by(|(_, one), (_, other)| one.total_cmp(other)) else { return false };
    let (mut low, mut high) = (at(best.saturating_sub(1)), at((best + 1).min(GRID)));
    let inner = |low: f64, high: f64| high - GOLDEN * (high - low);
    let (mut left, mut right) = (inner(low, high), inner(high, low));
    let (mut of_left, mut of_right) = (function(left), function(right));
    for _ in 0..SECTIONS {
        if least.min(of_left).min(of_right) <= limit {
            return true;
        }
        if of_left <= of_right {
            (high, right, of_right) = (right, left, of_left);
            left = inner(low, high);
            of_left = function(left);
        } else {
            (low, left, of_left) = (left, right, of_right);
            right = inner(high, low);
            of_right = function(right);
        }
    }
    of_left.min(of_right) <= limit
}
