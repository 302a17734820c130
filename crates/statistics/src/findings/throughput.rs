//! Sentences on closed loops: how much gets through, and what each request costs in CPU.

use super::order::{is_closed, less, worse_by};
use super::run::{Run, distance_from_reference};
use super::words;
use crate::retakes::FULL_MACHINE;
use crate::trials::is_valid;
use experiment::schema::{Cell, Conditions, Role, RoleTotal};

/// How much less than its floor each mode lets through, in one sentence; absent where no loop is closed or nothing can be
/// compared.
pub(super) fn headline(run: &Run<'_>) -> Option<String> {
    let at = reference_conditions(run)?;
    let floor = run.summary.cells.iter().find(|cell| {
        cell.conditions() == at && cell.mode.floor().is_none() && cell.rate_completed.is_some()
    })?;
    let modes = run.modes_with_proxies();
    let compared = run
        .summary
        .comparisons
        .iter()
        .filter(|comparison| comparison.conditions() == at && comparison.than == floor.mode)
        .filter(|comparison| modes.contains(&comparison.mode))
        .filter(|comparison| comparison.throughput.is_some_and(|change| change.low.is_some()));
    let (mut shown, mut alike) = (Vec::new(), Vec::new());
    for comparison in compared {
        match worse_by(run, at, comparison.mode, floor.mode) {
            Some(change) => {
                shown.push(format!(
                    "{} less with {}",
                    words::change_value(less(&change).estimate),
                    comparison.mode
                ));
            }
            None => alike.push(comparison.mode.to_string()),
        }
    }
    if shown.is_empty() {
        return None;
    }
    let rate = words::rate(floor.rate_completed?.estimate);
    let alike = if alike.is_empty() {
        String::new()
    } else {
        format!("; no loss is shown with {}", words::list(&alike))
    };
    Some(format!(
        "{} {} answers {rate}: {}{alike}.",
        words::sentence(&words::under(floor)),
        words::mode(floor.mode),
        words::list(&shown)
    ))
}

/// CPU of all proxies for each request, by mode.
pub(super) fn cpu_for_each_request(run: &Run<'_>) -> Option<String> {
    let at = reference_conditions(run)?;
    let cells: Vec<&Cell> =
        run.summary.cells.iter().filter(|cell| cell.conditions() == at && cell.valid > 0).collect();
    let of = |cell: &&Cell, role: Role| {
        cell.totals
            .iter()
            .copied()
            .find(|total: &RoleTotal| total.role == role)
            .map(|total| total.cpu_cores_per_1000_rps)
    };
    let proxies: Vec<String> = cells
        .iter()
        .filter_map(|cell| {
            Some(format!("{} with {}", words::cpu_time(&of(cell, Role::Proxy)?), words::mode(cell.mode)))
        })
        .collect();
    let control_plane = cells.iter().filter_map(|cell| of(cell, Role::ControlPlane)).map(|cpu| cpu.estimate);
    let most = control_plane.fold(0.0, f64::max);
    let control_plane = if most > 0.0 {
        format!("; the control plane at most {} besides", words::cpu_time_value(most))
    } else {
        String::new()
    };
    (!proxies.is_empty()).then(|| {
        format!(
            "CPU of all proxies for each request {}: {}{control_plane}.",
            words::under(cells[0]),
            words::list(&proxies)
        )
    })
}

/// Where the machine had no CPU left: throughput is then what the CPU of everything on the path allows.
pub(super) fn full_machine(run: &Run<'_>) -> Option<String> {
    let cells = run.summary.cells.iter().filter(|cell| is_closed(&cell.load));
    let mut conditions: Vec<Conditions<'_>> = cells.map(Cell::conditions).collect();
    conditions.dedup();
    let busy = |at: Conditions<'_>| {
        let trials = run.trials.all().iter().filter(|trial| trial.conditions() == at && is_valid(trial));
        let shares: Vec<f64> = trials
            .filter_map(|trial| trial.machine.as_ref())
            .filter(|machine| machine.cpus > 0)
            .map(|machine| machine.busy_cores / machine.cpus as f64)
            .collect();
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        (mean >= FULL_MACHINE).then(|| words::described(at))
    };
    let full: Vec<String> = conditions.into_iter().filter_map(busy).collect();
    (!full.is_empty()).then(|| {
        format!(
            "All CPUs of the machine were busy with {}: throughput there is what the CPU of the whole path allows, generator and \
             server included, and response times hold the waiting for it.",
            words::list(&full)
        )
    })
}

/// The closed loop that sentences speak of: that with the reference number of clients, or nearest to it, of those in which
/// most modes were measured.
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
