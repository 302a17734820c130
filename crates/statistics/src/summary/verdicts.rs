//! Which differences of a run are shown: everything that it tests is one family (`crate::family`).
//!
//! The error budget is divided among figures, so that many figures of little weight do not cost the median its
//! power.

use crate::family::{Group, decide};
use crate::figure_table::Difference;
use crate::findings::graph::Greatest;
use crate::findings::resources::CpuScaling;
use results::{
    CornerDifference, CostTerm, Estimate, FactorDifference, FactorEffect, FindingVerdict, Metric,
    ModeComparison,
};

/// A difference that a run tests, by its index in the comparisons, the effects of factors, or the greatest of
/// several.
#[derive(Clone, Copy, Debug)]
pub(super) enum Statement {
    /// Difference between modes.
    Modes(Metric, usize),
    /// Slope over the values of a numeric factor.
    Effect(Metric, usize),
    Greatest(usize),
    /// The first slope of a law of the control plane.
    Cost(usize),
    /// CPU of the proxies of a mode at its highest rate against the lowest.
    CpuScaling(usize),
    /// Difference between values of a factor.
    Values(Metric, usize),
    /// Difference between versions or programs of the mesh.
    Versions(Metric, usize),
    /// Difference between all factors at their last values and all at their first.
    Corners(Metric, usize),
}

impl Statement {
    /// Share of the figure in the error budget. The median of an open loop, the throughput of a closed loop
    /// and the 99th percentile of a fleet's convergence are what most runs are for.
    fn share(self) -> f64 {
        match self {
            Self::Modes(metric, _)
            | Self::Values(metric, _)
            | Self::Effect(metric, _)
            | Self::Corners(metric, _) => share(metric),
            Self::Versions(metric, _) => share_between_versions(metric),
            Self::Greatest(_) | Self::Cost(_) | Self::CpuScaling(_) => OTHER_SHARE,
        }
    }

    /// True if the other form of the difference is the same one in another unit.
    fn is_two_forms(self) -> bool {
        matches!(self, Self::Values(..) | Self::Versions(..) | Self::Corners(..))
    }

    /// True if both are differences of the same figure. A slope and a far corner are differences between values.
    fn is_alike(self, other: Self) -> bool {
        match (self, other) {
            (Self::Modes(one, _), Self::Modes(other, _))
            | (
                Self::Values(one, _) | Self::Corners(one, _) | Self::Effect(one, _),
                Self::Values(other, _) | Self::Corners(other, _) | Self::Effect(other, _),
            )
            | (Self::Versions(one, _), Self::Versions(other, _)) => one == other,
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }
}

/// Share of a metric that few runs are for.
const OTHER_SHARE: f64 = 0.04;

fn share(metric: Metric) -> f64 {
    match metric {
        Metric::ResponseTimeP50Us | Metric::FirstEventP50Us | Metric::ConvergenceP99Us => 0.8,
        Metric::RateCompleted => 0.7,
        // A delay that all tokens have alike is in no time between them: only their tail shows what a proxy does.
        Metric::EventGapP99Us => 0.4,
        Metric::ResponseTimeP99Us | Metric::FirstEventP99Us | Metric::ConvergenceLastUs => 0.08,
        _ => OTHER_SHARE,
    }
}

/// An upgrade may affect any resource: its CPU, memory and configuration are tested as much as its latency.
fn share_between_versions(metric: Metric) -> f64 {
    match metric {
        Metric::ResponseTimeP50Us
        | Metric::RateCompleted
        | Metric::ProxiesCpuCoresPer1000Rps
        | Metric::ConvergenceP99Us
        | Metric::IstiodCpuS => 0.4,
        Metric::ResponseTimeP99Us
        | Metric::ProxiesMemoryAnonymousBytes
        | Metric::ProxiesConfigurationBytes
        | Metric::IstiodMemoryBytes
        | Metric::IstiodMemoryAnonymousBytes
        | Metric::BytesPerProxy => 0.1,
        _ => OTHER_SHARE,
    }
}

/// A statement with its tested difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tested {
    pub statement: Statement,
    pub difference: Difference,
    /// Another form of the difference that stands beside the same verdict: as a fraction, or between the ends of a line.
    pub beside: Option<Difference>,
}

impl Tested {
    pub(super) fn new(statement: Statement, difference: Difference) -> Self {
        Self { statement, difference, beside: None }
    }

    /// Judges a difference. What is shown has an interval without zero; one that is not shown, an interval with zero.
    fn judged(&self, shown: bool, level: f64) -> Judgement {
        // The change between the ends of a line may be less clear than its slope.
        let both = [Some(self.difference), self.beside.filter(|_| self.statement.is_two_forms())];
        let exclude_zero = both.iter().flatten().all(|difference| difference.estimate.excludes_zero());
        if shown && exclude_zero {
            self.judgement(FindingVerdict::Shown, |one| Estimate { alone: None, ..one.estimate })
        } else {
            self.judgement(FindingVerdict::NotShown, |one| one.not_shown(level))
        }
    }

    fn judgement(&self, verdict: FindingVerdict, estimate: impl Fn(&Difference) -> Estimate) -> Judgement {
        let beside = self.beside.as_ref().map(&estimate);
        Judgement { verdict, difference: estimate(&self.difference), beside }
    }
}

/// A verdict, and the intervals that stand beside it.
#[derive(Clone, Copy, Debug)]
struct Judgement {
    verdict: FindingVerdict,
    difference: Estimate,
    beside: Option<Estimate>,
}

/// What a run tests; verdicts are written into it.
pub(super) struct Subjects<'a> {
    pub comparisons: &'a mut [ModeComparison],
    pub effects: &'a mut [FactorEffect],
    pub values: &'a mut [FactorDifference],
    pub corners: &'a mut [CornerDifference],
    pub greatest: &'a mut [Greatest],
    pub costs: [Option<&'a mut CostTerm>; 4],
    pub cpu_scalings: &'a mut [CpuScaling],
}

/// Writes the verdict on each difference into the subjects, with the intervals that stand beside it. Returns the number of
/// differences that the run tests.
pub(super) fn check(tested: &[Tested], subjects: &mut Subjects<'_>) -> usize {
    let (testable, others): (Vec<&Tested>, Vec<&Tested>) =
        tested.iter().partition(|tested| tested.difference.p_value.is_some());
    let count = testable.iter().map(|tested| subjects.comparisons_of(tested.statement)).sum();
    let mut figures: Vec<Vec<&Tested>> = Vec::new();
    for tested in testable {
        match figures.iter_mut().find(|figure| figure[0].statement.is_alike(tested.statement)) {
            Some(figure) => figure.push(tested),
            None => figures.push(vec![tested]),
        }
    }
    let group = |figure: &Vec<&Tested>| Group {
        share: figure.iter().map(|tested| tested.statement.share()).fold(0.0, f64::max),
        p_values: figure.iter().filter_map(|tested| tested.difference.p_value).collect(),
    };
    let outcomes = decide(&figures.iter().map(group).collect::<Vec<_>>());
    for (figure, outcome) in figures.into_iter().zip(outcomes) {
        for (tested, shown) in figure.into_iter().zip(outcome.shown) {
            subjects.write(tested.statement, &tested.judged(shown, outcome.level));
        }
    }
    for tested in others {
        let judgement = tested.judgement(FindingVerdict::CannotTell, |one| one.estimate);
        subjects.write(tested.statement, &judgement);
    }
    count
}

impl Subjects<'_> {
    /// Number of comparisons that a statement rests on: the greatest of several was compared like each of the others.
    fn comparisons_of(&self, statement: Statement) -> usize {
        match statement {
            Statement::Greatest(index) => self.greatest[index].candidates,
            _ => 1,
        }
    }

    fn write(&mut self, statement: Statement, judgement: &Judgement) {
        let Judgement { verdict, difference: estimate, beside } = *judgement;
        match statement {
            Statement::Modes(metric, index) => {
                let comparison = &mut self.comparisons[index];
                let place = match metric.clock() {
                    Some(clock) => comparison.times(clock).and_then(|times| times.place(metric.spoiled_by())),
                    None if metric == Metric::RateCompleted => {
                        Some((&mut comparison.throughput, &mut comparison.throughput_verdict))
                    }
                    None => Some((&mut comparison.proxy_cpu_per_request, &mut comparison.proxy_cpu_verdict)),
                };
                if let Some((place, of_verdict)) = place {
                    (*place, *of_verdict) = (Some(estimate), Some(verdict));
                }
            }
            Statement::Cost(index) => {
                if let Some(slope) = &mut self.costs[index] {
                    (slope.coefficient, slope.verdict) = (estimate, Some(verdict));
                }
            }
            Statement::Effect(_, index) => {
                let effect = &mut self.effects[index];
                (effect.per_unit, effect.verdict) = (estimate, verdict);
                effect.from_least_to_greatest = beside.unwrap_or(effect.from_least_to_greatest);
            }
            Statement::Values(_, index) | Statement::Versions(_, index) => {
                let difference = &mut self.values[index];
                (difference.estimate, difference.verdict) = (estimate, verdict);
                difference.relative = beside.or(difference.relative);
            }
            Statement::Corners(_, index) => {
                let corner = &mut self.corners[index];
                (corner.estimate, corner.verdict) = (estimate, verdict);
                corner.relative = beside.or(corner.relative);
            }
            Statement::Greatest(index) => {
                let greatest = &mut self.greatest[index];
                (greatest.difference.estimate, greatest.verdict) = (estimate, verdict);
            }
            Statement::CpuScaling(index) => self.cpu_scalings[index].verdict = verdict,
        }
    }
}
