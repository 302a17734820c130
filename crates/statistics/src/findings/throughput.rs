//! Closed loops: throughput, and CPU per request.

use super::order::{difference, is_closed, is_worse};
use super::run::{Run, distance_from_reference};
use crate::retakes::{FULL_MACHINE, busy_share};
use crate::trials::is_valid;
use results::{Cell, Conditions, Finding, FindingKind, FindingVerdict, Metric, Role, RoleTotal};

/// Throughput of the baseline and the loss with each mode; empty without a closed loop, or if no loss is
/// shown.
pub(super) fn headline(run: &Run<'_>) -> Vec<Finding> {
    let Some(at) = reference_conditions(run) else { return Vec::new() };
    let mut cells = run.summary.cells.iter().filter(|cell| cell.conditions() == at);
    let baseline = cells.find_map(|cell| {
        let rate = cell.rate_completed.filter(|_| cell.mode.floor().is_none())?;
        Some((cell, rate))
    });
    let Some((baseline, rate)) = baseline else { return Vec::new() };
    let modes = run.modes_with_proxies();
    let compared = run
        .summary
        .comparisons
        .iter()
        .filter(|comparison| comparison.conditions() == at && comparison.than == baseline.mode)
        .filter(|comparison| modes.contains(&comparison.mode));
    let losses: Vec<Finding> = compared
        .filter_map(|comparison| {
            let judged = difference(run, at, comparison.mode, baseline.mode)?;
            let change = judged.0;
            change.low?;
            let is_worse = is_worse(at, &judged);
            let verdict = if is_worse { FindingVerdict::Shown } else { FindingVerdict::NotShown };
            let cell = run.summary.cells.iter().find(|cell| cell.key() == at.cell(comparison.mode))?;
            Some(Finding {
                figure: Some(Metric::RateCompletedChange.into()),
                ..Finding::of_cell(FindingKind::Headline, cell).against(baseline.mode, &change, verdict)
            })
        })
        .collect();
    if !losses.iter().any(Finding::is_shown) {
        return Vec::new();
    }
    let baseline =
        Finding::of_cell(FindingKind::Headline, baseline).with_figure(Metric::RateCompleted, &rate);
    [baseline].into_iter().chain(losses).collect()
}

/// CPU per request of all proxies and of the control plane, by mode.
pub(super) fn cpu_per_request(run: &Run<'_>) -> Vec<Finding> {
    let Some(at) = reference_conditions(run) else { return Vec::new() };
    let cells: Vec<&Cell> =
        run.summary.cells.iter().filter(|cell| cell.conditions() == at && cell.valid > 0).collect();
    let of = |role: Role, name: &'static str| {
        cells.iter().filter_map(move |cell| {
            let total = cell.totals.iter().copied().find(|total: &RoleTotal| total.role == role)?;
            let finding = Finding::of_cell(FindingKind::CpuPerRequest, cell).about(name);
            Some(finding.with_figure(Metric::CpuCoresPer1000Rps, &total.cpu_cores_per_1000_rps))
        })
    };
    let proxies: Vec<Finding> = of(Role::Proxy, "proxies").collect();
    if proxies.is_empty() {
        return proxies;
    }
    proxies.into_iter().chain(of(Role::ControlPlane, "control-plane")).collect()
}

/// Conditions under which the machine had no CPU left: throughput is then limited by the CPU of everything on
/// the path.
pub(super) fn full_machine(run: &Run<'_>) -> Vec<Finding> {
    let cells = run.summary.cells.iter().filter(|cell| is_closed(&cell.load));
    let mut conditions: Vec<Conditions<'_>> = cells.map(Cell::conditions).collect();
    conditions.dedup();
    let busy = |at: Conditions<'_>| {
        let trials = run.trials.all().iter().filter(|trial| trial.conditions() == at && is_valid(trial));
        let trials: Vec<_> = trials.filter(|trial| trial.machine.is_some()).collect();
        let mean = busy_share(trials.iter().copied())?;
        (mean >= FULL_MACHINE).then(|| Finding {
            n: Some(trials.len()),
            ..Finding::new(FindingKind::FullMachine).at(at).with_value(Metric::MachineBusy, mean)
        })
    };
    conditions.into_iter().filter_map(busy).collect()
}

/// The closed loop in which the most modes were measured; among equals, the one nearest to the reference
/// number of clients.
fn reference_conditions<'a>(run: &Run<'a>) -> Option<Conditions<'a>> {
    let closed = run.summary.cells.iter().filter(|cell| is_closed(&cell.load) && cell.valid > 0);
    let measured = |at: &Conditions<'_>| {
        run.summary.cells.iter().filter(|cell| cell.conditions() == *at && cell.valid > 0).count()
    };
    let distance = |at: &Conditions<'_>| distance_from_reference(at.load);
    closed.map(Cell::conditions).min_by(|one, other| {
        measured(other).cmp(&measured(one)).then(distance(one).total_cmp(&distance(other)))
    })
}
