//! Closed loops: throughput, and CPU per request.

use super::order::{difference, is_worse};
use super::run::{Run, most_measured};
use crate::retakes::{FULL_MACHINE, busy_share};
use crate::trials::is_valid;
use results::finding::{About, Against, CpuPayer, FullMachine, Headline, Loss, Measured, OfCell, Value};
use results::{Cell, Conditions, Factors, Finding, LoadPoint, Metric, Role};

/// Throughput of the baseline and the loss with each mode; empty without a closed loop, or if no loss is
/// shown.
pub(super) fn headline(run: &Run<'_>) -> Vec<Finding> {
    let Some((factors, load)) = reference_conditions(run) else { return Vec::new() };
    let at = Conditions { factors: &factors, load: &load };
    let mut cells = run.summary.cells.iter().filter(|cell| cell.conditions().covers(at));
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
        .filter(|comparison| comparison.conditions().covers(at) && comparison.than == baseline.mode)
        .filter(|comparison| modes.contains(&comparison.mode));
    let losses: Vec<OfCell<Loss>> = compared
        .filter_map(|comparison| {
            let judged = difference(run, at, comparison.mode, baseline.mode)?;
            let change = judged.0;
            change.low?;
            let is_it = |cell: &&Cell| cell.mode == comparison.mode && cell.conditions().covers(at);
            let cell = run.summary.cells.iter().find(is_it)?;
            let change = Against { against: baseline.mode, difference: change, verdict: judged.1 };
            let loss = Loss { figure: Metric::RateCompletedChange, change };
            Some(OfCell::under(at, cell, loss).resting_on(&judged.0))
        })
        .collect();
    let is_shown =
        |loss: &OfCell<Loss>| is_worse(at, &(loss.content.change.difference, loss.content.change.verdict));
    if !losses.iter().any(is_shown) {
        return Vec::new();
    }
    let measured = Measured::new(Metric::RateCompleted, &rate);
    let baseline = Headline::Measured(OfCell::under(at, baseline, measured).resting_on(&rate));
    let losses = losses.into_iter().map(Headline::Loss);
    [baseline].into_iter().chain(losses).map(Finding::Headline).collect()
}

/// CPU per request of all proxies and of the control plane, by mode.
pub(super) fn cpu_per_request(run: &Run<'_>) -> Vec<Finding> {
    let Some((factors, load)) = reference_conditions(run) else { return Vec::new() };
    let at = Conditions { factors: &factors, load: &load };
    let cells: Vec<&Cell> =
        run.summary.cells.iter().filter(|cell| cell.conditions().covers(at) && cell.valid > 0).collect();
    let of = |role: Role, payer: CpuPayer| {
        let cells = cells.iter();
        cells.filter_map(move |cell| {
            let estimate = &cell.total(role)?.cpu_cores_per_1000_rps;
            let cost = About { subject: payer, figure: Measured::new(Metric::CpuCoresPer1000Rps, estimate) };
            Some(OfCell::under(at, cell, cost).resting_on(estimate))
        })
    };
    let mut costs: Vec<_> = of(Role::Proxy, CpuPayer::Proxies).collect();
    if !costs.is_empty() {
        costs.extend(of(Role::ControlPlane, CpuPayer::ControlPlane));
    }
    costs.into_iter().map(Finding::CpuPerRequest).collect()
}

/// Conditions under which the machine had no CPU left: throughput is then limited by the CPU of everything on
/// the path.
pub(super) fn full_machine(run: &Run<'_>) -> Vec<Finding> {
    let busy = |(factors, load): (Factors, LoadPoint)| {
        let at = Conditions { factors: &factors, load: &load };
        let trials = run.trials.all().iter().filter(|trial| trial.conditions().covers(at) && is_valid(trial));
        let trials: Vec<_> = trials.filter(|trial| trial.machine.is_some()).collect();
        let mean = busy_share(trials.iter().copied())?;
        let busy = Value { figure: Metric::MachineBusy, value: mean };
        (mean >= FULL_MACHINE).then_some(Finding::FullMachine(FullMachine {
            busy,
            n: trials.len(),
            factors,
            load,
        }))
    };
    run.conditions(|cell| cell.load.is_closed_loop()).into_iter().filter_map(busy).collect()
}

/// The closed loop in which the most modes were measured; among equals, the one nearest to the reference
/// number of clients.
fn reference_conditions(run: &Run<'_>) -> Option<(Factors, LoadPoint)> {
    let is_measured = |cell: &Cell| cell.load.is_closed_loop() && cell.valid > 0;
    let measured = |(factors, load): &(Factors, LoadPoint)| {
        let at = Conditions { factors, load };
        run.summary.cells.iter().filter(|cell| is_measured(cell) && cell.conditions().covers(at)).count()
    };
    most_measured(run.conditions(is_measured), measured, |(_, load)| load)
}
