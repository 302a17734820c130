//! Sentence on what pods reserve and what they used of it.

use super::run::Run;
use super::words;
use experiment::schema::{Cell, GroupReservation, ResourceGroup};

/// Of the cells under the load that sentences speak of; nothing where the topology reserves nothing.
pub(super) fn reserved_and_used(run: &Run<'_>) -> Option<String> {
    let mut modes = Vec::new();
    for cell in &run.summary.cells {
        if !modes.contains(&cell.mode) {
            modes.push(cell.mode);
        }
    }
    let cells: Vec<&Cell> = modes.into_iter().filter_map(|mode| run.reference_cell(mode)).collect();
    let first = cells.first()?;
    let reserved = first.reserved.as_ref().filter(|reserved| reserved.is_reserved())?;
    let app = reserved.group(ResourceGroup::App)?;
    let meshes: Vec<String> = cells
        .iter()
        .filter_map(|cell| Some((cell, cell.reserved.as_ref()?.group(ResourceGroup::Mesh)?)))
        .map(|(cell, mesh)| format!("with {} {}", words::mode(cell.mode), amount(mesh)))
        .collect();
    let mesh = match meshes.is_empty() {
        true => String::new(),
        false => format!("; the mesh {}", words::list(&meshes)),
    };
    Some(format!("Reserved against used {}: the application {}{mesh}.", words::under(first), amount(app)))
}

/// `14.00 cores, of which 0.41 used (3.0%), and 10.5 GB, of which 0.2 used`.
fn amount(group: &GroupReservation) -> String {
    let used = |share: Option<f64>| {
        share.map_or_else(String::new, |share| format!(" ({} used)", words::percent(share)))
    };
    let cpu = group.used_cpu_cores.filter(|_| group.reserved_cpu_cores > 0.0);
    let memory = group.used_memory_bytes.filter(|_| group.reserved_memory_bytes > 0.0);
    format!(
        "reserves {}{} and {}{}",
        words::cores_value(group.reserved_cpu_cores),
        used(cpu.map(|used| used.estimate / group.reserved_cpu_cores)),
        words::memory_value(group.reserved_memory_bytes),
        used(memory.map(|used| used.estimate / group.reserved_memory_bytes)),
    )
}
