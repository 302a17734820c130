//! Fleets of simulated proxies: how soon changes arrive, what that costs the control plane, and which factors
//! both grow with.

use super::factors::content;
use super::run::Run;
use results::finding::{Convergence, Empty, Headline, Measured, OfCell, Timed, Trials, Unanswered};
use results::{Cell, Estimate, FactorEffect, Finding, FindingVerdict, FleetSummary, Metric};

/// Maximum number of cells with a sentence besides the headline's.
const MAX_CELLS: usize = 7;

/// Figures of a factor's effect that are reported.
const REPORTED: [Metric; 3] = [Metric::ConvergenceP99Us, Metric::IstiodCpuS, Metric::IstiodMemoryBytes];

/// Headline: the largest fleet.
pub(super) fn headline(run: &Run<'_>) -> Vec<Finding> {
    let figures = headline_cell(run).into_iter().flat_map(|(cell, fleet)| of_cell(cell, fleet));
    figures.map(|figure| Finding::Headline(Headline::Fleet(figure))).collect()
}

/// The other fleets.
pub(super) fn convergence(run: &Run<'_>) -> Vec<Finding> {
    let headline = headline_cell(run).map(|(cell, _)| cell.key());
    let others = measured(run).filter(|(cell, _)| Some(cell.key()) != headline).take(MAX_CELLS);
    others.flat_map(|(cell, fleet)| of_cell(cell, fleet)).map(Finding::Convergence).collect()
}

/// Fleets in which proxies missed a change.
pub(super) fn not_converged(run: &Run<'_>) -> Vec<Finding> {
    let fleets = run.summary.cells.iter().filter_map(|cell| Some((cell, cell.fleet.as_ref()?)));
    let missing = fleets.filter(|(_, fleet)| fleet.never > 0);
    let content = |(cell, fleet): (&Cell, &FleetSummary)| {
        let trials = Trials { n: fleet.never as usize, of: fleet.proxies as usize };
        OfCell { trials, ..OfCell::new(cell, Empty {}) }
    };
    missing.map(content).map(Finding::NotConverged).collect()
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
        effect.change()
    };
    Finding::FactorEffect(content(effect, &effect.factor, effect.figure, &estimate))
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

fn of_cell(cell: &Cell, fleet: &FleetSummary) -> Vec<OfCell<Convergence>> {
    // A restart of istiod is not a change of the mesh, whose arrival convergence is about.
    let has_none = fleet.convergence_us.count + fleet.convergence_us.never == 0;
    let event = fleet.changes.first().filter(|_| has_none);
    let times = event.map_or(&fleet.convergence_us, |event| &event.convergence_us);
    let content = |timed: Timed| {
        let event = event.map(|event| event.kind.clone());
        OfCell::new(cell, Convergence { proxies: fleet.proxies, event, timed })
    };
    let figure = |metric: Metric, estimate: Option<Estimate>| {
        let estimate = estimate?;
        Some(content(Timed::Measured(Measured::new(metric, &estimate))).resting_on(&estimate))
    };
    let never = Unanswered { figure: Metric::ConvergenceP99Us, verdict: FindingVerdict::CannotTell };
    let never = (times.never > 0).then(|| content(Timed::Never(never)));
    let figures = [
        figure(Metric::ConvergenceP99Us, times.p99).or(never),
        figure(Metric::ConvergenceLastUs, times.last),
        figure(Metric::IstiodCpuCores, fleet.estimates.get(Metric::IstiodCpuCores)),
        figure(Metric::IstiodMemoryBytes, fleet.estimates.get(Metric::IstiodMemoryBytes)),
    ];
    figures.into_iter().flatten().collect()
}
