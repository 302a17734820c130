//! What pods reserve, and how much of it they used.

use super::run::Run;
use results::finding::{OfCell, Reservation, Reserving, Value};
use results::{Cell, Estimate, Finding, GroupReservation, Metric, ResourceGroup};

/// For the reference cells; empty if the topology reserves nothing.
pub(super) fn reserved_and_used(run: &Run<'_>) -> Vec<Finding> {
    let mut modes = Vec::new();
    for cell in &run.summary.cells {
        if !modes.contains(&cell.mode) {
            modes.push(cell.mode);
        }
    }
    let cells: Vec<&Cell> = modes.into_iter().filter_map(|mode| run.reference_cell(mode)).collect();
    let group =
        |cell: &Cell, group| cell.reserved.as_ref().and_then(|reserved| reserved.group(group).cloned());
    let Some(first) =
        cells.first().filter(|cell| cell.reserved.as_ref().is_some_and(|all| all.is_reserved()))
    else {
        return Vec::new();
    };
    let Some(app) = group(first, ResourceGroup::App) else { return Vec::new() };
    let meshes = cells.iter().filter_map(|cell| Some((cell, group(cell, ResourceGroup::Mesh)?)));
    let meshes = meshes.flat_map(|(cell, mesh)| of_group(cell, Reserving::Mesh, &mesh));
    of_group(first, Reserving::Application, &app).into_iter().chain(meshes).collect()
}

fn of_group(cell: &Cell, pods: Reserving, group: &GroupReservation) -> [Finding; 2] {
    let finding = |figure, value, used: Option<Estimate>| {
        let used = used.filter(|_| value > 0.0);
        let reservation = Reservation { pods, reserved: Value { figure, value }, used };
        Finding::Reservation(OfCell::new(cell, reservation))
    };
    [
        finding(Metric::ReservedCpuCores, group.reserved_cpu_cores, group.used_cpu_cores),
        finding(Metric::ReservedMemoryBytes, group.reserved_memory_bytes, group.used_memory_bytes),
    ]
}
