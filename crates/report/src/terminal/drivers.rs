//! Drivers and services on a terminal, where a cell has several: a line per cell, and a table of the few that matter most.

use super::style::{Options, WIDE, bold, plain, wrap};
use crate::drivers::{DriverTable, Group, ServiceTable};
use crate::format::Interval;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// Rows shown per cell: the others are in the report.
const MAX_ROWS: usize = 5;

/// The drivers' section, its heading first.
pub(super) fn drivers(table: &DriverTable, options: Options) -> Vec<String> {
    let mut header =
        vec!["driver".to_owned(), format!("p50, {}", table.unit), format!("p99, {}", table.unit)];
    header.push("requests/s".to_owned());
    if table.has_objective {
        header.push("objective".to_owned());
    }
    section("Drivers", "slowest", &table.cells, &header, options, |row| {
        let mut cells = vec![plain(&row.name)];
        cells.extend([&row.p50, &row.p99, &row.completed].map(|figure| shown(figure, options)));
        if table.has_objective {
            cells.push(plain(&row.objective));
        }
        cells
    })
}

/// The services' section, its heading first.
pub(super) fn services(table: &ServiceTable, options: Options) -> Vec<String> {
    let header = ["service", "pods", "requests/s", "CPU, cores"].map(str::to_owned);
    section("Services", "with most CPU", &table.cells, &header, options, |row| {
        let mut cells = vec![plain(&row.name), row.replicas.to_string()];
        cells.extend([&row.requests, &row.cores].map(|figure| shown(figure, options)));
        cells
    })
}

fn section<Row>(
    heading: &str,
    order: &str,
    groups: &[Group<Row>],
    header: &[String],
    options: Options,
    cells: impl Fn(&Row) -> Vec<String>,
) -> Vec<String> {
    let mut lines = vec![bold(heading, options)];
    for group in groups {
        let more = match group.rows.len() {
            rows if rows > MAX_ROWS => format!(". The {MAX_ROWS} {order}:"),
            _ => String::new(),
        };
        let headline = format!("{} at {}: {}{more}", group.mode, group.load, group.headline);
        lines.extend(wrap(&plain(&headline), options.width));
        let mut drawn = Table::new();
        drawn.load_style(presets::NOTHING);
        drawn.set_content_arrangement(ContentArrangement::Dynamic);
        drawn.set_width(u16::try_from(options.width.clamp(40, 400)).unwrap_or(80));
        drawn.set_header(header);
        for row in group.rows.iter().take(MAX_ROWS) {
            drawn.add_row(cells(row).into_iter().map(Cell::new));
        }
        for index in 1..drawn.column_count() {
            if let Some(column) = drawn.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        lines.extend(drawn.trim_fmt().lines().map(str::to_owned));
        lines.push(String::new());
    }
    lines
}

/// The interval beside the estimate where there is room for it.
fn shown(figure: &Interval, options: Options) -> String {
    if options.width >= WIDE { figure.text() } else { figure.estimate.clone() }
}
