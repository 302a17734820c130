//! Drivers, services and the calls between them on a terminal, for cells with several: a line per cell, and a
//! table of the most relevant ones, or of copies combined.

use super::style::{Options, WIDE, bold, plain, wrap};
use crate::drivers::{DriverTable, Group};
use crate::edges::EdgeTable;
use crate::format::Interval;
use crate::services::ServiceTable;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// The drivers' section, starting with its heading.
pub(super) fn drivers(table: &DriverTable, options: Options) -> Vec<String> {
    let mut header =
        vec!["driver".to_owned(), format!("p50, {}", table.unit), format!("p99, {}", table.unit)];
    header.push("requests/s".to_owned());
    if table.has_objective {
        header.push("objective".to_owned());
    }
    let all = "`meshmeter report DIR --drivers-csv FILE`";
    section(("Drivers", all), &table.cells, &header, options, |row| {
        let mut cells = vec![plain(&row.name)];
        cells.extend([&row.p50, &row.p99, &row.completed].map(|figure| shown(figure, options)));
        if table.has_objective {
            cells.push(plain(&row.objective));
        }
        cells
    })
}

/// The services' section, starting with its heading.
pub(super) fn services(table: &ServiceTable, options: Options) -> Vec<String> {
    let mut header = ["service", "pods", "requests/s", "CPU, cores"].map(str::to_owned).to_vec();
    if table.has_proxies {
        header.extend(["proxies, cores", "in all"].map(str::to_owned));
    }
    let all = "`meshmeter report DIR --services-csv FILE`";
    section(("Services", all), &table.cells, &header, options, |row| {
        let mut cells = vec![copies(plain(&row.name), row.copies), row.replicas.to_string()];
        cells.extend([&row.requests, &row.cores].map(|figure| shown(figure, options)));
        if table.has_proxies {
            cells.extend([shown(&row.proxy_cores, options), row.total_cores.clone()]);
        }
        cells
    })
}

/// The section of calls between services, starting with its heading.
pub(super) fn edges(table: &EdgeTable, options: Options) -> Vec<String> {
    let (p50, p99) = (format!("p50, {}", table.unit), format!("p99, {}", table.unit));
    let header = ["call", "requests/s", &p50, &p99, "errors", "proven"].map(str::to_owned);
    let all = "`meshmeter report DIR --edges-csv FILE`";
    section(("Calls between services", all), &table.cells, &header, options, |row| {
        let mut cells = vec![copies(plain(&format!("{} → {}", row.from, row.to)), row.copies)];
        cells.extend([&row.requests, &row.p50, &row.p99].map(|figure| shown(figure, options)));
        cells.extend([row.errors.clone(), row.proven.clone()]);
        cells
    })
}

fn copies(name: String, copies: usize) -> String {
    if copies == 1 { name } else { format!("{name} ×{copies}") }
}

/// `(heading, all)`: `all` is the command that lists every row.
fn section<Row>(
    (heading, all): (&str, &str),
    groups: &[Group<Row>],
    header: &[String],
    options: Options,
    cells: impl Fn(&Row) -> Vec<String>,
) -> Vec<String> {
    let mut lines = vec![bold(heading, options)];
    for group in groups {
        let range = if options.width >= WIDE { " with their range" } else { "" };
        let what = match (&group.selection, group.folded) {
            (None, false) => String::new(),
            (None, true) => format!(". Copies together, medians{range}:"),
            (Some(first), false) => format!(". {first}:"),
            (Some(first), true) => format!(". Copies together, medians{range}. {first}:"),
        };
        let headline = format!("{} at {}: {}{what}", group.mode, group.load, group.headline);
        lines.extend(wrap(&plain(&headline), options.width));
        lines.extend(drawn_table(header, group.rows.iter().map(&cells), options));
        lines.push(String::new());
    }
    if groups.iter().any(|group| !group.all.is_empty()) {
        // No blank line after the last table.
        lines.pop();
        lines.extend(wrap(&format!("All of them: {all}"), options.width));
        lines.push(String::new());
    }
    lines
}

/// A plain table: names left-aligned, figures right-aligned.
pub(super) fn drawn_table(
    header: &[String],
    rows: impl Iterator<Item = Vec<String>>,
    options: Options,
) -> Vec<String> {
    let mut drawn = Table::new();
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

/// The interval beside the estimate if there is space for it.
fn shown(figure: &Interval, options: Options) -> String {
    if options.width >= WIDE { figure.text() } else { figure.estimate.clone() }
}
