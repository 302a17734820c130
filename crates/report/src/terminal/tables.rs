//! Tables on a terminal: those that are described for HTML too ([`crate::tables`]).

use super::result_table::STAR;
use super::style::{Options, WIDE, bold, plain, wrap};
use crate::tables::{Table, TableCell, TableRow};
use comfy_table::{Cell, CellAlignment, ContentArrangement, presets};

/// A section with one table per group. `all` is the command that lists every row.
pub(super) fn section(heading: &str, table: &Table, all: &str, options: Options) -> Vec<String> {
    let mut lines = vec![bold(heading, options)];
    for group in &table.groups {
        let range = if options.width >= WIDE { " with their range" } else { "" };
        let what = match (&group.selection, group.folded) {
            (None, false) => String::new(),
            (None, true) => format!(". Copies together, medians{range}:"),
            (Some(first), false) => format!(". {first}:"),
            (Some(first), true) => format!(". Copies together, medians{range}. {first}:"),
        };
        lines.extend(wrap(&plain(&format!("{}: {}{what}", group.place, group.note)), options.width));
        // The interval beside the estimate if there is space for it.
        let text = |cell: &TableCell| if options.width >= WIDE { cell.figure.text() } else { estimate(cell) };
        lines.extend(drawn(table, &group.rows, text, options));
        lines.push(String::new());
    }
    if table.groups.iter().any(|group| !group.all.is_empty()) {
        // No blank line after the last table.
        lines.pop();
        lines.extend(wrap(&format!("All of them: {all}"), options.width));
        lines.push(String::new());
    }
    lines
}

/// Each group below its heading, with estimates alone.
pub(super) fn groups(table: &Table, options: Options) -> Vec<String> {
    let mut lines = Vec::new();
    for group in table.groups.iter().filter(|group| !group.only_html) {
        lines.extend(wrap(&plain(&format!("{}: {}", group.place, group.note)), options.width));
        lines.extend(drawn(table, &group.rows, estimate, options));
        lines.push(String::new());
    }
    lines
}

/// Each group below its name, with whole texts.
pub(super) fn listed(heading: &str, table: &Table, options: Options) -> Vec<String> {
    let mut lines = vec![bold(heading, options)];
    for group in &table.groups {
        lines.extend(wrap(&plain(&group.place), options.width));
        lines.extend(drawn(table, &group.rows, estimate, options));
        lines.push(String::new());
    }
    lines
}

/// All rows in one table, with estimates alone: terminal tables are narrow.
pub(super) fn flat(heading: &str, table: &Table, options: Options) -> Vec<String> {
    let groups = table.groups.iter().filter(|group| !group.only_html);
    let rows: Vec<TableRow> = groups.flat_map(|group| group.rows.clone()).collect();
    let mut lines = vec![bold(heading, options)];
    lines.extend(drawn(table, &rows, estimate, options));
    lines.push(String::new());
    lines
}

fn estimate(cell: &TableCell) -> String {
    format!("{}{}", cell.figure.estimate, if cell.has_star { STAR } else { "" })
}

/// The columns that the terminal has.
fn drawn(
    table: &Table,
    rows: &[TableRow],
    text: impl Fn(&TableCell) -> String,
    options: Options,
) -> Vec<String> {
    let columns = table.columns.iter().enumerate();
    let columns = columns.filter(|(_, column)| !column.is_wide || options.width >= WIDE);
    let (indices, header): (Vec<usize>, Vec<String>) =
        columns.filter_map(|(index, column)| Some((index, column.terminal.clone()?))).unzip();
    let rows = rows.iter().map(|row| indices.iter().map(|index| plain(&text(&row[*index]))).collect());
    drawn_table(&header, rows, options)
}

/// A plain table: names left-aligned, figures right-aligned.
pub(super) fn drawn_table(
    header: &[String],
    rows: impl Iterator<Item = Vec<String>>,
    options: Options,
) -> Vec<String> {
    let mut drawn = comfy_table::Table::new();
    drawn.load_style(presets::NOTHING);
    drawn.set_content_arrangement(ContentArrangement::Dynamic);
    drawn.set_width(u16::try_from(options.width.clamp(40, 400)).unwrap_or(80));
    drawn.set_header(header);
    for row in rows {
        drawn.add_row(row.into_iter().map(Cell::new));
    }
    for index in 1..drawn.column_count() {
        if let Some(column) = drawn.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    drawn.trim_fmt().lines().map(str::to_owned).collect()
}
