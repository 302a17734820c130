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
//! levels follow, so two bounded parameters remain. The Levenberg-Marquardt method finds them from a grid of
//! starts. Intervals are profile likelihoods with Student's t; at a bound they are one-sided.

use super::lack_of_fit;
use crate::interval::ALLOWANCE;
use crate::student;
use results::{Estimate, LackOfFit, ScalingParameters};

/// The pair of σ and κ.
type Shape = [f64; 2];
const SIGMA: usize = 0;
const KAPPA: usize = 1;
const MAX_SHAPE: Shape = [1.0, f64::INFINITY];

/// Starts of the search: σ, and the share that κ adds to the denominator at the largest value.
const SIGMAS: [f64; 6] = [0.0, 0.02, 0.1, 0.3, 0.7, 0.97];
const CROSSTALKS: [f64; 5] = [0.0, 0.01, 0.1, 0.5, 2.0];
const STEPS: usize = 200;
/// Bisection steps to find an end of an interval.
const HALVINGS: usize = 30;
/// Minimum standard deviation of the logarithm of a throughput.
const MIN_DEVIATION: f64 = 1e-4;
/// An interval that extends beyond this distance of the logarithm is open.
const FARTHEST_LOGARITHM: f64 = 20.0;

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
    let best = problem.search(Constraint::default())?;
    let freedom = observations.len() as f64 - problem.repeats as f64 - 2.0;
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
    };
    let ends = |index: usize| within.as_ref().map(|within| within.shape(index));
    let [sigma, kappa] = best.shape;
    let level = within.as_ref().zip(variance).map(|(within, variance)| within.level(variance));
    let parameters = ScalingParameters {
        lambda: estimate(best.level.exp(), level.map(|(low, high)| (low.exp(), high.exp()))),
        sigma: estimate(sigma, ends(SIGMA)),
        kappa: estimate(kappa, ends(KAPPA)),
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
        lack_of_fit: lack_of_fit::lack_of_fit(observations, problem.repeats, best.sum, free),
        deviation: variance.map(f64::sqrt),
    })
}

/// Parameters that are fixed while the rest is fitted.
#[derive(Clone, Copy, Debug, Default)]
struct Constraint {
    /// Fixed values of σ and κ.
    shape: [Option<f64>; 2],
    /// The mean level of the repeats: the logarithm of λ.
    level: Option<f64>,
}

struct Problem<'a> {
    observations: &'a [Observation],
    repeats: usize,
    /// Sum of the weights of each repeat.
    weights: Vec<f64>,
    greatest: f64,
}

/// A point of the search.
#[derive(Clone, Copy, Debug)]
struct Point {
    shape: Shape,
    /// Weighted sum of squares.
    sum: f64,
    /// Mean level of the repeats: the logarithm of λ.
    level: f64,
    gradient: Shape,
    curvature: [Shape; 2],
}

/// A mean of residuals with its derivatives with respect to σ and κ.
#[derive(Clone, Copy, Default)]
struct Mean {
    value: f64,
    slope: Shape,
}

impl<'a> Problem<'a> {
    fn new(observations: &'a [Observation]) -> Self {
        let repeats = observations.iter().map(|one| one.repeat + 1).max().unwrap_or(0);
        let mut weights = vec![0.0; repeats];
        observations.iter().for_each(|one| weights[one.repeat] += one.weight);
        let greatest = observations.iter().map(|one| one.at).fold(0.0, f64::max);
        Self { observations, repeats, weights, greatest }
    }

    /// Logarithm of the throughput without the shape, with its derivatives. `None` if the denominator is not
    /// positive.
    fn level_of(&self, one: &Observation, [sigma, kappa]: Shape) -> Option<Mean> {
        let (contention, crosstalk) = (one.at - 1.0, one.at * (one.at - 1.0));
        let denominator = 1.0 + sigma * contention + kappa * crosstalk;
        (denominator > 1e-9).then(|| Mean {
            value: one.logarithm - one.at.ln() + denominator.ln(),
            slope: [contention / denominator, crosstalk / denominator],
        })
    }

    fn evaluate(&self, shape: Shape, pinned_level: Option<f64>) -> Option<Point> {
        let levels: Vec<Mean> =
            self.observations.iter().map(|one| self.level_of(one, shape)).collect::<Option<_>>()?;
        let mut means = vec![Mean::default(); self.repeats];
        for (one, level) in self.observations.iter().zip(&levels) {
            let share = one.weight / self.weights[one.repeat];
            let mean = &mut means[one.repeat];
            mean.value += share * level.value;
            (0..2).for_each(|index| mean.slope[index] += share * level.slope[index]);
        }
        let mut point = Point { shape, sum: 0.0, level: 0.0, gradient: [0.0; 2], curvature: [[0.0; 2]; 2] };
        let mut add = |weight: f64, residual: f64, slope: Shape| {
            point.sum += weight * residual * residual;
            for (row, of_row) in slope.into_iter().enumerate() {
                point.gradient[row] += weight * residual * of_row;
                (0..2).for_each(|column| point.curvature[row][column] += weight * of_row * slope[column]);
            }
        };
        for (one, level) in self.observations.iter().zip(&levels) {
            let mean = means[one.repeat];
            let slope = [level.slope[0] - mean.slope[0], level.slope[1] - mean.slope[1]];
            add(one.weight, level.value - mean.value, slope);
        }
        let count = self.repeats as f64;
        let all = means.iter().fold(Mean::default(), |all, mean| Mean {
            value: all.value + mean.value / count,
            slope: [all.slope[0] + mean.slope[0] / count, all.slope[1] + mean.slope[1] / count],
        });
        if let Some(level) = pinned_level {
            // The best levels of the repeats among those with this mean.
            let variance = self.weights.iter().map(|weight| 1.0 / weight).sum::<f64>() / (count * count);
            add(1.0 / variance, all.value - level, all.slope);
        }
        point.level = all.value;
        Some(point)
    }

    /// The best fit from all starts.
    fn search(&self, constraint: Constraint) -> Option<Point> {
        let crosstalk = |sigma: f64, share: f64| {
            share * (1.0 - sigma + sigma * self.greatest) / (self.greatest * self.greatest)
        };
        let starts = SIGMAS
            .iter()
            .flat_map(|sigma| CROSSTALKS.iter().map(move |share| [*sigma, crosstalk(*sigma, *share)]));
        let found = starts.filter_map(|start| self.descend(start, constraint));
        found.min_by(|one, other| one.sum.total_cmp(&other.sum))
    }

    /// The sum of squares of the best fit from a nearby point and a few others.
    fn search_near(&self, near: Shape, constraint: Constraint) -> f64 {
        let starts = [near, [near[SIGMA], 0.0], [0.0, near[KAPPA]], [0.3, 0.0]];
        let found = starts.into_iter().filter_map(|start| self.descend(start, constraint));
        found.map(|point| point.sum).fold(f64::INFINITY, f64::min)
    }

    /// The Levenberg-Marquardt method within the bounds.
    fn descend(&self, start: Shape, constraint: Constraint) -> Option<Point> {
        let start = [0, 1].map(|index| constraint.shape[index].unwrap_or(start[index]));
        let mut point = self.evaluate(start, constraint.level)?;
        let mut damping = 1e-3;
        for _ in 0..STEPS {
            let free = [0, 1].map(|index| {
                let (value, slope) = (point.shape[index], point.gradient[index]);
                let pushed_out = value <= 0.0 && slope > 0.0 || value >= MAX_SHAPE[index] && slope < 0.0;
                constraint.shape[index].is_none() && !pushed_out
            });
            let step = step(&point, free, damping);
            let next = [0, 1].map(|index| (point.shape[index] + step[index]).clamp(0.0, MAX_SHAPE[index]));
            match self.evaluate(next, constraint.level).filter(|next| next.sum < point.sum) {
                Some(next) => {
                    let gained = point.sum - next.sum;
                    point = next;
                    damping = f64::max(damping / 5.0, 1e-12);
                    if gained <= 1e-10 * point.sum {
                        break;
                    }
                }
                None if damping > 1e10 => break,
                None => damping *= 4.0,
            }
        }
        Some(point)
    }
}

/// A damped Gauss-Newton step in the free parameters.
fn step(point: &Point, free: [bool; 2], damping: f64) -> Shape {
    let diagonal = |index: usize| point.curvature[index][index] * (1.0 + damping) + 1e-300;
    let alone = |index: usize| if free[index] { -point.gradient[index] / diagonal(index) } else { 0.0 };
    if free != [true, true] {
        return [alone(0), alone(1)];
    }
    let across = point.curvature[0][1];
    let determinant = diagonal(0) * diagonal(1) - across * across;
    if determinant <= 0.0 {
        return [alone(0), alone(1)];
    }
    [
        (across * point.gradient[1] - diagonal(1) * point.gradient[0]) / determinant,
        (across * point.gradient[0] - diagonal(0) * point.gradient[1]) / determinant,
    ]
}

/// Intervals: all values whose best fit is worse than the overall best by no more than noise allows.
struct Within<'a> {
    problem: &'a Problem<'a>,
    best: Point,
    /// Allowed excess of the sum of squares.
    excess: f64,
}

impl Within<'_> {
    fn holds(&self, sum: f64) -> bool {
        sum - self.best.sum <= self.excess
    }

    /// Interval of σ or κ.
    fn shape(&self, index: usize) -> (f64, f64) {
        let holds = |value: f64| {
            let mut constraint = Constraint::default();
            constraint.shape[index] = Some(value);
            self.holds(self.problem.search_near(self.best.shape, constraint))
        };
        let value = self.best.shape[index];
        let low = if holds(0.0) { 0.0 } else { boundary(value, 0.0, holds) };
        let high = if index == SIGMA {
            if holds(1.0) { 1.0 } else { boundary(value, 1.0, holds) }
        } else {
            let mut beyond = f64::max(value, 1e-6 / self.problem.greatest.powi(2)) * 2.0;
            while holds(beyond) && beyond < 1e9 {
                beyond *= 2.0;
            }
            if beyond < 1e9 { boundary(value, beyond, holds) } else { f64::INFINITY }
        };
        (low, high)
    }

    /// Interval of the logarithm of λ: noise of the trials, plus differences between repeats beyond it.
    fn level(&self, variance: f64) -> (f64, f64) {
        let level = self.best.level;
        let holds = |level: f64| {
            let constraint = Constraint { level: Some(level), ..Constraint::default() };
            self.holds(self.problem.search_near(self.best.shape, constraint))
        };
        let reach = |sign: f64| {
            let mut distance = 1e-3;
            while holds(level + sign * distance) && distance < FARTHEST_LOGARITHM {
                distance *= 2.0;
            }
            (boundary(level, level + sign * distance, holds) - level).abs()
        };
        let between = self.between_repeats(variance);
        (level - reach(-1.0).hypot(between), level + reach(1.0).hypot(between))
    }

    /// Half-width of the mean level's interval that comes from differences between repeats beyond the noise
    /// of their trials.
    fn between_repeats(&self, variance: f64) -> f64 {
        let problem = self.problem;
        let count = problem.repeats as f64;
        if problem.repeats < 2 {
            return 0.0;
        }
        let mut levels = vec![0.0; problem.repeats];
        for one in problem.observations {
            let level = problem.level_of(one, self.best.shape).map_or(0.0, |level| level.value);
            levels[one.repeat] += one.weight * level / problem.weights[one.repeat];
        }
        let mean = levels.iter().sum::<f64>() / count;
        let seen = levels.iter().map(|level| (level - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let by_trials = variance * problem.weights.iter().map(|weight| 1.0 / weight).sum::<f64>() / count;
        ALLOWANCE * student::t_95(count - 1.0) * ((seen - by_trials).max(0.0) / count).sqrt()
    }

    /// Interval of the value beyond which throughput falls: `N* = √((1 − σ) / κ)`.
    fn peak(&self, peak: f64) -> (f64, f64) {
        let holds = |peak: f64| {
            let sum = |sigma: f64| {
                let point = self.problem.evaluate([sigma, (1.0 - sigma) / (peak * peak)], None);
                point.map_or(f64::INFINITY, |point| point.sum)
            };
            self.holds(least(sum))
        };
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

/// Bisects for the boundary of a condition that holds at `inside` and not at `outside`.
fn boundary(mut inside: f64, mut outside: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(inside, outside);
        if holds(middle) { inside = middle } else { outside = middle }
    }
    outside
}

/// The minimum of a function of σ, by a grid and golden-section search around its best point.
fn least(function: impl Fn(f64) -> f64) -> f64 {
    const POINTS: usize = 32;
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let at = |index: usize| index as f64 / POINTS as f64;
    let best = (0..=POINTS).min_by(|one, other| function(at(*one)).total_cmp(&function(at(*other))));
    let best = best.unwrap_or(0);
    let (mut low, mut high) = (at(best.saturating_sub(1)), at((best + 1).min(POINTS)));
    for _ in 0..HALVINGS {
        let (left, right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        if function(left) <= function(right) { high = right } else { low = left }
    }
    function(f64::midpoint(low, high)).min(function(at(best)))
}
