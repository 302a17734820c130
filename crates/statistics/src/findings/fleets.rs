//! Fleets of simulated proxies: how soon changes arrive, what that costs the control plane, and which factors
//! both grow with.

use super::run::Run;
use results::{Cell, Estimate, FactorEffect, Finding, FindingKind, FindingVerdict, FleetSummary, Metric};

/// Maximum number of cells with a sentence besides the headline's.
const MAX_CELLS: usize = 7;

/// Figures of a factor's effect that are reported.
const REPORTED: [Metric; 3] = [Metric::ConvergenceP99Us, Metric::IstiodCpuS, Metric::IstiodMemoryBytes];

/// Headline: the largest fleet.
pub(super) fn headline(run: &Run<'_>) -> Vec<Finding> {
    headline_cell(run).map_or_else(Vec::new, |(cell, fleet)| of_cell(FindingKind::Headline, cell, fleet))
}

/// The other fleets.
pub(super) fn convergence(run: &Run<'_>) -> Vec<Finding> {
    let headline = headline_cell(run).map(|(cell, _)| cell.key());
    let others = measured(run).filter(|(cell, _)| Some(cell.key()) != headline).take(MAX_CELLS);
    others.flat_map(|(cell, fleet)| of_cell(FindingKind::Convergence, cell, fleet)).collect()
}

/// Fleets in which proxies missed a change.
pub(super) fn not_converged(run: &Run<'_>) -> Vec<Finding> {
    let fleets = run.summary.cells.iter().filter_map(|cell| Some((cell, cell.fleet.as_ref()?)));
    let missing = fleets.filter(|(_, fleet)| fleet.never > 0);
    missing
        .map(|(cell, fleet)| Finding {
            n: usize::try_from(fleet.never).ok(),
            of: usize::try_from(fleet.proxies).ok(),
            ..Finding::of_cell(FindingKind::NotConverged, cell)
        })
        .collect()
}

/// Effects of factors on convergence and control plane, per thousand if the factor is a count.
pub(super) fn factors(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for factor in &run.experiment.factors {
        let own = || run.summary.factor_effects.iter().filter(|effect| effect.factor == factor.key);
        let Some(first) = own().find(|effect| REPORTED.contains(&effect.figure)) else {
            continue;
        };
        // With the first values of the other factors.
        let beside = own().filter(|effect| effect.factors == first.factors);
        let of = |figure: Metric| beside.clone().find(|effect| effect.figure == figure).map(of_effect);
        findings.extend(REPORTED.into_iter().filter_map(of));
    }
    findings
}

fn of_effect(effect: &FactorEffect) -> Finding {
    let estimate = if counts_things(&effect.factor) {
        effect.per_unit.map(|slope| slope * 1000.0)
    } else {
        effect.from_least_to_greatest
    };
    Finding {
        mode: Some(effect.mode),
        factors: effect.factors.clone(),
        load: effect.load.clone(),
        verdict: Some(effect.verdict),
        ..Finding::new(FindingKind::FactorEffect).about(&effect.factor).with_figure(effect.figure, &estimate)
    }
}

/// True if a factor is a number of proxies or objects.
#[must_use]
pub fn counts_things(factor: &str) -> bool {
    const COUNTS: [&str; 8] = [
        "proxies",
        "services",
        "pods",
        "namespaces",
        "virtual-services",
        "destination-rules",
        "gateways",
        "policies",
    ];
    factor.strip_prefix("fleet.").is_some_and(|key| COUNTS.contains(&key))
}

fn measured<'a>(run: &Run<'a>) -> impl Iterator<Item = (&'a Cell, &'a FleetSummary)> {
    let cells = run.summary.cells.iter().filter(|cell| cell.valid > 0);
    cells.filter_map(|cell| Some((cell, cell.fleet.as_ref()?)))
}

/// The first of the largest fleets.
fn headline_cell<'a>(run: &Run<'a>) -> Option<(&'a Cell, &'a FleetSummary)> {
    measured(run).reduce(|best, one| if one.1.proxies > best.1.proxies { one } else { best })
}

fn of_cell(kind: FindingKind, cell: &Cell, fleet: &FleetSummary) -> Vec<Finding> {
    // A restart of istiod is no change of the mesh, whose arrival convergence is about.
    let has_none = fleet.convergence_us.count + fleet.convergence_us.never == 0;
    let event = fleet.changes.first().filter(|_| has_none);
    let times = event.map_or(&fleet.convergence_us, |event| &event.convergence_us);
    let finding = || Finding {
        candidates: usize::try_from(fleet.proxies).ok(),
        subject: event.map(|event| event.kind.clone()),
        ..Finding::of_cell(kind, cell)
    };
    let figure = |metric: Metric, estimate: Option<Estimate>| {
        estimate.map(|estimate| finding().with_figure(metric, &estimate))
    };
    // A percentile that falls among proxies never reached has no time.
    let never = || Finding {
        figure: Some(Metric::ConvergenceP99Us.into()),
        verdict: Some(FindingVerdict::CannotTell),
        ..finding()
    };
    let convergence = figure(Metric::ConvergenceP99Us, times.p99);
    let convergence = convergence.or_else(|| (times.never > 0).then(never));
    let others = [
        figure(Metric::ConvergenceLastUs, times.last),
        figure(Metric::IstiodCpuCores, fleet.estimates.get(Metric::IstiodCpuCores)),
        figure(Metric::IstiodMemoryBytes, fleet.estimates.get(Metric::IstiodMemoryBytes)),
    ];
    convergence.into_iter().chain(others.into_iter().flatten()).collect()
}
