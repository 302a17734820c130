//! The far corner: all factors at their last values against all at their first.

use super::run::{Run, distance_from_reference, nearest};
use super::word_factors::{figure_and_change, headline_change};
use results::finding::{Corner, Headline, Measured};
use results::{CornerDifference, Estimate, Finding, LoadPoint, Metric, Mode, OwnedCellKey};

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
        let Some(first) = nearest(own(), |corner| distance_from_reference(&corner.load)) else { continue };
        let reported = REPORTED.into_iter().filter_map(|figure| {
            own().filter(|corner| corner.is_beside(first)).find(|corner| corner.figure == figure)
        });
        let reported = reported.filter_map(|corner| {
            Some(content(corner, figure_and_change(corner.figure, corner.estimate, corner.relative)?))
        });
        findings.extend(reported.map(Finding::FactorCorner));
    }
    findings
}

/// Part of the headline: the far corner of the first of these modes that has one, by the figure of its load.
pub(super) fn headline(
    run: &Run<'_>,
    modes: &[Mode],
    figure: impl Fn(&LoadPoint) -> Metric,
) -> Option<Headline> {
    let of = |mode: Mode| {
        let all = run.summary.corner_differences.iter();
        let own = all.filter(|corner| corner.mode == mode && corner.figure == figure(&corner.load));
        let corner = nearest(own, |corner| distance_from_reference(&corner.load))?;
        Some(content(corner, headline_change(corner.figure, corner.estimate, corner.relative)?))
    };
    modes.iter().find_map(|mode| of(*mode)).map(Headline::Corner)
}

/// A corner with the figure and the difference to report.
fn content(corner: &CornerDifference, (figure, estimate): (Metric, Estimate)) -> Corner {
    let CornerDifference { mode, load, from, to, verdict, .. } = corner;
    Corner {
        place: OwnedCellKey { mode: *mode, factors: to.clone(), load: load.clone() },
        from: from.clone(),
        measured: Measured::new(figure, &estimate),
        verdict: *verdict,
        n: estimate.n,
    }
}
