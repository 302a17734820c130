//! Reserved and used resources on a terminal.

use super::drivers::drawn_table;
use super::style::{Options, bold, plain, wrap};
use crate::reservations::ReservationTable;

/// The section, starting with its heading.
pub(super) fn lines(table: &ReservationTable, options: Options) -> Vec<String> {
    let mut lines = vec![bold("Reserved against used", options)];
    let memory = format!("memory, {}", table.memory_unit);
    let header =
        ["", "containers", "CPU, cores", "used", "share", &memory, "used", "share"].map(str::to_owned);
    for cell in &table.cells {
        lines
            .extend(wrap(&plain(&format!("{} at {}: {}", cell.mode, cell.load, cell.counts)), options.width));
        let rows = cell.rows.iter().map(|row| {
            vec![
                row.name.to_owned(),
                row.containers.to_string(),
                row.reserved_cpu.clone(),
                row.used_cpu.estimate.clone(),
                plain(&row.cpu_share),
                row.reserved_memory.clone(),
                row.used_memory.estimate.clone(),
                plain(&row.memory_share),
            ]
        });
        lines.extend(drawn_table(&header, rows, options));
        lines.push(String::new());
    }
    lines
}
