//! Which differences of a run are shown: everything that it tests is one family (`crate::family`).
//!
//! The error budget is divided among figures, so that many figures of little weight do not cost the median its
//! power.

use crate::family::{Group, shown};
use crate::figure_table::Difference;
use crate::findings::graph::Greatest;
use crate::findings::resources::CpuScaling;
use results::{
    ComparedFigure, CostTerm, FactorDifference, FactorEffect, FindingVerdict, FleetFigure, ModeComparison,
};

/// A difference that a run tests, by its index in the comparisons, the effects of factors, or the greatest of
/// several.
#[derive(Clone, Copy, Debug)]
pub(super) enum Statement {
    P50(usize),
    P90(usize),
    P99(usize),
    Throughput(usize),
    ProxyCpu(usize),
    Effect(usize),
    Greatest(usize),
    /// The first slope of a law of the control plane.
    Cost(usize),
    /// CPU of the proxies of a mode at its highest rate against the lowest.
    CpuScaling(usize),
    /// Difference between values of a factor.
    Values(ComparedFigure, usize),
    /// Difference between versions or programs of the mesh.
    Versions(ComparedFigure, usize),
}

impl Statement {
    /// Share of the figure in the error budget. The median of an open loop, the throughput of a closed loop
    /// and the 99th percentile of a fleet's convergence are what most runs are for.
    fn share(self) -> f64 {
        match self {
            Self::P50(_) => 0.8,
            Self::Throughput(_) => 0.7,
            Self::P99(_) => 0.08,
            Self::P90(_)
            | Self::ProxyCpu(_)
            | Self::Effect(_)
            | Self::Greatest(_)
            | Self::Cost(_)
            | Self::CpuScaling(_) => 0.04,
            Self::Values(figure, _) => {
                match figure {
                    ComparedFigure::ResponseTimeP50Us
                    | ComparedFigure::Fleet(FleetFigure::ConvergenceP99Us) => 0.8,
                    ComparedFigure::RateCompleted => 0.7,
                    ComparedFigure::ResponseTimeP99Us
                    | ComparedFigure::Fleet(FleetFigure::ConvergenceLastUs) => 0.08,
                    ComparedFigure::ResponseTimeP90Us
                    | ComparedFigure::ProxiesCpuCoresPer1000Rps
                    | ComparedFigure::ProxiesMemoryAnonymousBytes
                    | ComparedFigure::ProxiesConfigurationBytes
                    | ComparedFigure::ConfiguredLastUs
                    | ComparedFigure::Fleet(FleetFigure::ConvergenceP50Us)
                    | ComparedFigure::Fleet(FleetFigure::ConvergenceP90Us)
                    | ComparedFigure::Fleet(FleetFigure::FirstConfigurationLastUs)
                    | ComparedFigure::Fleet(FleetFigure::IstiodCpuS)
                    | ComparedFigure::Fleet(FleetFigure::IstiodMemoryBytes)
                    | ComparedFigure::Fleet(FleetFigure::IstiodMemoryAnonymousBytes)
                    | ComparedFigure::Fleet(FleetFigure::BytesPerProxy) => 0.04,
                }
            }
            Self::Versions(figure, _) => share_between_versions(figure),
        }
    }

    /// True if both are differences of the same figure.
    fn is_alike(self, other: Self) -> bool {
        match (self, other) {
            (Self::Values(one, _), Self::Values(other, _))
            | (Self::Versions(one, _), Self::Versions(other, _)) => one == other,
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }
}

/// An upgrade may affect any resource: its CPU, memory and configuration are tested as much as its latency.
fn share_between_versions(figure: ComparedFigure) -> f64 {
    match figure {
        ComparedFigure::ResponseTimeP50Us
        | ComparedFigure::RateCompleted
        | ComparedFigure::ProxiesCpuCoresPer1000Rps
        | ComparedFigure::Fleet(FleetFigure::ConvergenceP99Us)
        | ComparedFigure::Fleet(FleetFigure::IstiodCpuS) => 0.4,
        ComparedFigure::ResponseTimeP99Us
        | ComparedFigure::ProxiesMemoryAnonymousBytes
        | ComparedFigure::ProxiesConfigurationBytes
        | ComparedFigure::Fleet(FleetFigure::IstiodMemoryBytes)
        | ComparedFigure::Fleet(FleetFigure::IstiodMemoryAnonymousBytes)
        | ComparedFigure::Fleet(FleetFigure::BytesPerProxy) => 0.1,
        ComparedFigure::ResponseTimeP90Us
        | ComparedFigure::ConfiguredLastUs
        | ComparedFigure::Fleet(FleetFigure::ConvergenceP50Us)
        | ComparedFigure::Fleet(FleetFigure::ConvergenceP90Us)
        | ComparedFigure::Fleet(FleetFigure::ConvergenceLastUs)
        | ComparedFigure::Fleet(FleetFigure::FirstConfigurationLastUs) => 0.04,
    }
}

/// A statement with its tested difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tested {
    pub statement: Statement,
    pub difference: Difference,
}

/// What a run tests; verdicts are written into it.
pub(super) struct Subjects<'a> {
    pub comparisons: &'a mut [ModeComparison],
    pub effects: &'a mut [FactorEffect],
    pub values: &'a mut [FactorDifference],
    pub greatest: &'a mut [Greatest],
    pub costs: [Option<&'a mut CostTerm>; 4],
    pub cpu_scalings: &'a mut [CpuScaling],
}

/// Writes into the subjects whether each difference is shown.
pub(super) fn check(tested: &[Tested], subjects: &mut Subjects<'_>) {
    let (testable, others): (Vec<&Tested>, Vec<&Tested>) =
        tested.iter().partition(|tested| tested.difference.p_value.is_some());
    let mut figures: Vec<Vec<&Tested>> = Vec::new();
    for tested in testable {
        match figures.iter_mut().find(|figure| figure[0].statement.is_alike(tested.statement)) {
            Some(figure) => figure.push(tested),
            None => figures.push(vec![tested]),
        }
    }
    let group = |figure: &Vec<&Tested>| Group {
        share: figure[0].statement.share(),
        p_values: figure.iter().filter_map(|tested| tested.difference.p_value).collect(),
    };
    let shown = shown(&figures.iter().map(group).collect::<Vec<_>>());
    for (tested, shown) in figures.into_iter().flatten().zip(shown.into_iter().flatten()) {
        // If the interval includes zero, a verdict that excludes zero would contradict it.
        let verdict = if shown && tested.difference.estimate.excludes_zero() {
            FindingVerdict::Shown
        } else {
            FindingVerdict::NotShown
        };
        subjects.write(tested.statement, verdict);
    }
    for tested in others {
        subjects.write(tested.statement, FindingVerdict::CannotTell);
    }
}

impl Subjects<'_> {
    fn write(&mut self, statement: Statement, verdict: FindingVerdict) {
        let place = match statement {
            Statement::P50(index) => &mut self.comparisons[index].response_time_us.verdicts.p50,
            Statement::P90(index) => &mut self.comparisons[index].response_time_us.verdicts.p90,
            Statement::P99(index) => &mut self.comparisons[index].response_time_us.verdicts.p99,
            Statement::Throughput(index) => &mut self.comparisons[index].throughput_verdict,
            Statement::ProxyCpu(index) => &mut self.comparisons[index].proxy_cpu_verdict,
            Statement::Effect(index) => &mut self.effects[index].verdict,
            Statement::Values(_, index) | Statement::Versions(_, index) => {
                self.values[index].verdict = verdict;
                return;
            }
            Statement::Greatest(index) => {
                self.greatest[index].verdict = verdict;
                return;
            }
            Statement::CpuScaling(index) => {
                self.cpu_scalings[index].verdict = verdict;
                return;
            }
            Statement::Cost(index) => match &mut self.costs[index] {
                Some(slope) => &mut slope.verdict,
                None => return,
            },
        };
        *place = Some(verdict);
    }
}
