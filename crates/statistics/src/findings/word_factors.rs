//! Factors with non-numeric values: what each other value changes relative to the first.

use super::run::{Run, distance_from_reference};
use results::finding::{Difference, Measured};
use results::{Estimate, FactorDifference, Finding, Metric, OwnedCellKey, is_of_components};

/// Per factor, mode and value at the reference load, with the first values of the other factors. Figures are
/// the median (open loop) or the throughput (closed loop), and CPU per request. For a fleet they are the 99th
/// percentile of convergence, istiod's CPU and memory, and bytes.
pub(super) fn differences(run: &Run<'_>) -> Vec<Finding> {
    let all = &run.summary.factor_differences;
    let mut findings = Vec::new();
    let is_main = |figure| matches!(figure, Metric::ResponseTimeP50Us | Metric::ConvergenceP99Us);
    for first in nearest_to_reference(all.iter().filter(|difference| is_main(difference.figure))) {
        let beside = all.iter().filter(|difference| difference.is_beside(first));
        findings.extend(beside.filter_map(content).map(Finding::FactorDifference));
    }
    findings
}

/// One difference per factor, mode and value: the first of those nearest to the reference load.
pub(super) fn nearest_to_reference<'a>(
    all: impl Iterator<Item = &'a FactorDifference>,
) -> Vec<&'a FactorDifference> {
    let mut nearest: Vec<&FactorDifference> = Vec::new();
    for one in all {
        let known = nearest
            .iter_mut()
            .find(|known| (&known.factor, known.mode, &known.to) == (&one.factor, one.mode, &one.to));
        match known {
            None => nearest.push(one),
            Some(known) if distance_from_reference(&one.load) < distance_from_reference(&known.load) => {
                *known = one;
            }
            Some(_) => {}
        }
    }
    nearest
}

/// The figure of a difference in findings, and the reported change.
pub(super) fn reported(difference: &FactorDifference) -> Option<(Metric, Estimate)> {
    let is_of_programs =
        matches!(difference.figure, Metric::ResponseTimeP99Us | Metric::ProxiesMemoryAnonymousBytes);
    if is_of_programs && !is_of_components(&difference.factor) {
        return None;
    }
    figure_and_change(difference.figure, difference.estimate, difference.relative)
}

/// Times in their unit, everything else as a fraction; absent for figures that findings do not report.
pub(super) fn figure_and_change(
    figure: Metric,
    estimate: Estimate,
    relative: Option<Estimate>,
) -> Option<(Metric, Estimate)> {
    let change = match figure {
        metric @ (Metric::ResponseTimeP50Us
        | Metric::ResponseTimeP99Us
        | Metric::ConvergenceP99Us
        | Metric::ConfiguredLastUs) => return Some((metric, estimate)),
        Metric::ProxiesMemoryAnonymousBytes => Metric::MemoryAnonymousChange,
        Metric::RateCompleted => Metric::RateCompletedChange,
        Metric::ProxiesCpuCoresPer1000Rps => Metric::CpuPerRequestChange,
        Metric::ProxiesConfigurationBytes => Metric::ConfigurationSizeChange,
        metric @ (Metric::IstiodCpuS
        | Metric::IstiodMemoryBytes
        | Metric::IstiodMemoryAnonymousBytes
        | Metric::BytesPerProxy) => metric,
        _ => return None,
    };
    Some((change, relative?))
}

/// Like [`figure_and_change`], with every percentile.
pub(super) fn headline_change(
    figure: Metric,
    estimate: Estimate,
    relative: Option<Estimate>,
) -> Option<(Metric, Estimate)> {
    if figure.is_time() { Some((figure, estimate)) } else { figure_and_change(figure, estimate, relative) }
}

pub(super) fn content(difference: &FactorDifference) -> Option<Difference> {
    let (figure, estimate) = reported(difference)?;
    Some(of_change(difference, figure, &estimate))
}

/// A difference with the figure and the change to report.
pub(super) fn of_change(difference: &FactorDifference, figure: Metric, estimate: &Estimate) -> Difference {
    let mut factors = difference.factors.clone();
    factors.insert(difference.factor.clone(), difference.to.clone());
    Difference {
        place: OwnedCellKey { mode: difference.mode, factors, load: difference.load.clone() },
        subject: difference.factor.clone(),
        from: difference.from.clone(),
        same_programs: difference.same_programs,
        measured: Measured::new(figure, estimate),
        verdict: difference.verdict,
        n: estimate.n,
    }
}
