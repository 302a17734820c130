//! Factors with non-numeric values: what each other value changes relative to the first.

use super::run::{Run, distance_from_reference};
use results::finding::figures;
use results::{
    ComparedFigure, Estimate, FactorDifference, Finding, FindingKind, FleetFigure, is_of_components,
};

/// Per factor, mode and value at the reference load, with the first values of the other factors. Figures are
/// the median (open loop) or the throughput (closed loop), and CPU per request. For a fleet they are the 99th
/// percentile of convergence, istiod's CPU and memory, and bytes.
pub(super) fn differences(run: &Run<'_>) -> Vec<Finding> {
    let all = &run.summary.factor_differences;
    let mut findings = Vec::new();
    for first in medians_under_reference_load(all) {
        let beside = all.iter().filter(|difference| difference.is_beside(first));
        findings.extend(beside.filter_map(|difference| finding(FindingKind::FactorDifference, difference)));
    }
    findings
}

/// One difference per factor, mode and value: the first of those nearest to the reference load.
fn medians_under_reference_load(all: &[FactorDifference]) -> Vec<&FactorDifference> {
    let mut nearest: Vec<&FactorDifference> = Vec::new();
    let is_main = |figure| {
        matches!(
            figure,
            ComparedFigure::ResponseTimeP50Us | ComparedFigure::Fleet(FleetFigure::ConvergenceP99Us)
        )
    };
    for median in all.iter().filter(|difference| is_main(difference.figure)) {
        let known = nearest.iter_mut().find(|known| {
            (&known.factor, known.mode, &known.to) == (&median.factor, median.mode, &median.to)
        });
        match known {
            None => nearest.push(median),
            Some(known) if distance_from_reference(&median.load) < distance_from_reference(&known.load) => {
                *known = median;
            }
            Some(_) => {}
        }
    }
    nearest
}

/// The name of a difference's figure in findings, and the reported change: times in their unit, everything
/// else as a fraction.
pub(super) fn reported(difference: &FactorDifference) -> Option<(&'static str, Estimate)> {
    Some(match difference.figure {
        ComparedFigure::ResponseTimeP50Us => (figures::P50, difference.estimate),
        ComparedFigure::RateCompleted => (figures::COMPLETED_CHANGE, difference.relative?),
        ComparedFigure::ProxiesCpuCoresPer1000Rps => (figures::CPU_PER_REQUEST_CHANGE, difference.relative?),
        ComparedFigure::Fleet(FleetFigure::ConvergenceP99Us) => {
            (figures::CONVERGENCE_P99, difference.estimate)
        }
        ComparedFigure::Fleet(FleetFigure::IstiodCpuS) => (figures::ISTIOD_CPU, difference.relative?),
        ComparedFigure::Fleet(FleetFigure::IstiodMemoryBytes) => {
            (figures::ISTIOD_MEMORY, difference.relative?)
        }
        ComparedFigure::Fleet(FleetFigure::IstiodMemoryAnonymousBytes) => {
            (figures::ISTIOD_MEMORY_ANONYMOUS, difference.relative?)
        }
        ComparedFigure::Fleet(FleetFigure::BytesPerProxy) => (figures::BYTES_PER_PROXY, difference.relative?),
        ComparedFigure::ProxiesMemoryAnonymousBytes if is_of_components(&difference.factor) => {
            (figures::MEMORY_ANONYMOUS_CHANGE, difference.relative?)
        }
        ComparedFigure::ProxiesConfigurationBytes => (figures::CONFIGURATION_CHANGE, difference.relative?),
        ComparedFigure::ConfiguredLastUs => (figures::CONFIGURED_LAST, difference.estimate),
        ComparedFigure::ResponseTimeP99Us if is_of_components(&difference.factor) => {
            (figures::P99, difference.estimate)
        }
        _ => return None,
    })
}

pub(super) fn finding(kind: FindingKind, difference: &FactorDifference) -> Option<Finding> {
    let (figure, estimate) = reported(difference)?;
    let mut factors = difference.factors.clone();
    factors.insert(difference.factor.clone(), difference.to.clone());
    Some(Finding {
        mode: Some(difference.mode),
        factors,
        from: Some(difference.from.clone()),
        load: Some(difference.load.clone()),
        verdict: Some(difference.verdict),
        same_programs: difference.same_programs,
        ..Finding::new(kind).about(&difference.factor).with_figure(figure, &estimate)
    })
}
