//! The far corner: all factors at their last values against all at their first.

use super::run::{Run, distance_from_reference};
use super::word_factors::figure_and_change;
use results::finding::{Corner, Measured};
use results::{CornerDifference, Finding, Metric, Mode, OwnedCellKey};

/// Figures of a corner in findings, in their order.
const REPORTED: [Metric; 9] = [
    Metric::ResponseTimeP50Us,
    Metric::ResponseTimeP99Us,
    Metric::RateCompleted,
    Metric::ProxiesCpuCoresPer1000Rps,
    Metric::ProxiesMemoryAnonymousBytes,
    Metric::ConvergenceP99Us,
    Metric::IstiodCpuS,
    Metric::IstiodMemoryBytes,
    Metric::BytesPerProxy,
];

/// By mode at the reference load.
pub(super) fn corners(run: &Run<'_>) -> Vec<Finding> {
    let all = &run.summary.corner_differences;
    let mut modes: Vec<Mode> = all.iter().map(|corner| corner.mode).collect();
    modes.sort_unstable();
    modes.dedup();
    let mut findings = Vec::new();
    for mode in modes {
        let own = || all.iter().filter(move |corner| corner.mode == mode);
        let distance = |corner: &CornerDifference| distance_from_reference(&corner.load);
        let Some(first) = own().min_by(|one, other| distance(one).total_cmp(&distance(other))) else {
            continue;
        };
        let reported = REPORTED.into_iter().filter_map(|figure| {
            own().filter(|corner| corner.is_beside(first)).find(|corner| corner.figure == figure)
        });
        findings.extend(reported.filter_map(content).map(Finding::FactorCorner));
    }
    findings
}

fn content(corner: &CornerDifference) -> Option<Corner> {
    let CornerDifference { mode, load, from, to, figure, estimate, relative, verdict } = corner;
    let (figure, estimate) = figure_and_change(*figure, *estimate, *relative)?;
    Some(Corner {
        place: OwnedCellKey { mode: *mode, factors: to.clone(), load: load.clone() },
        from: from.clone(),
        measured: Measured::new(figure, &estimate),
        verdict: *verdict,
        n: estimate.n,
    })
}
