//! Corrected and uncorrected distributions on a terminal, for cells in which they differ.

use super::drivers::drawn_table;
use super::style::{Options, bold, plain, wrap};
use crate::clocks::{ClockCell, ClockTable};

/// The section, starting with its heading; empty if both clocks show the same in every cell.
pub(super) fn lines(table: &ClockTable, options: Options) -> Vec<String> {
    let differing: Vec<&ClockCell> = table.cells.iter().filter(|cell| cell.differs).collect();
    if differing.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![bold("Corrected and uncorrected", options)];
    let alike = table.cells.len() - differing.len();
    let others = if alike == 0 { "" } else { " The other cells read alike by both, within 10 %." };
    lines.extend(wrap(
        &format!(
            "Response time from the intended start (corrected) and from the actual send (uncorrected), by percentile.{others}"
        ),
        options.width,
    ));
    for cell in differing {
        let headline = format!("{} at {}: {}", cell.mode, cell.load, cell.requests);
        lines.extend(wrap(&plain(&headline), options.width));
        let header: Vec<String> = std::iter::once("percentile")
            .chain(table.columns.iter().map(String::as_str))
            .map(str::to_owned)
            .collect();
        let rows = cell.rows.iter().map(|row| {
            let values = row.values.iter().map(|value| plain(value));
            std::iter::once(row.name.to_owned()).chain(values).collect()
        });
        lines.extend(drawn_table(&header, rows, options));
        lines.push(String::new());
    }
    for note in &table.notes {
        lines.extend(wrap(note, options.width));
    }
    if !table.notes.is_empty() {
        lines.push(String::new());
    }
    lines
}
