//! Fleets of a run on a terminal: one line per cell, and one line per kind of change.

use super::drivers::drawn_table;
use super::style::{Options, WIDE, bold, plain};
use crate::fleets::{ChangeRow, FleetRow, FleetTable};
use crate::format::Interval;

/// The section, starting with its heading.
pub(super) fn lines(table: &FleetTable, options: Options) -> Vec<String> {
    let is_wide = options.width >= WIDE;
    let unit = table.time_unit;
    let mut lines = vec![bold("Fleets of simulated proxies, and the control plane", options)];
    let mut header = vec!["".to_owned(), "proxies".to_owned(), "complete".to_owned()];
    header.push(format!("configured,\nlast, {unit}"));
    header.extend(["istiod\ncores".to_owned(), format!("istiod\n{}", table.memory_unit)]);
    header.push("per proxy".to_owned());
    if is_wide {
        header.extend([
            "istiod\nCPU s".to_owned(),
            "API and etcd\nCPU s".to_owned(),
            "fleet\ncores".to_owned(),
        ]);
    }
    let rows = table.rows.iter().map(|row| {
        let mut cells = vec![plain(&row.label), row.proxies.clone(), complete(row)];
        cells.push(short(&row.first_configuration.last));
        cells.extend([short(&row.istiod_cores), short(&row.istiod_memory), row.bytes_per_proxy.clone()]);
        if is_wide {
            cells.extend([&row.istiod_cpu_s, &row.api_cpu_s, &row.fleet_cores].map(short));
        }
        cells
    });
    lines.extend(drawn_table(&header, rows, options));
    lines.push(String::new());
    lines.extend(arrivals(
        table,
        &format!("Changes, from acknowledgement to arrival, {unit}"),
        "changes",
        table.rows.iter().flat_map(|row| row.changes.iter().map(move |change| (row, change, &change.times))),
        options,
    ));
    if table.has_outages {
        lines.extend(arrivals(
            table,
            &format!("Connections lost, until complete again, {unit}"),
            "proxies",
            table
                .rows
                .iter()
                .flat_map(|row| row.outages.iter().map(move |outage| (row, outage, &outage.proxies))),
            options,
        ));
    }
    lines
}

/// A table of times: one line per cell and kind, with its count.
fn arrivals<'a>(
    table: &FleetTable,
    title: &str,
    counted: &str,
    rows: impl Iterator<Item = (&'a FleetRow, &'a ChangeRow, &'a String)>,
    options: Options,
) -> Vec<String> {
    let mut header = vec![String::new(), counted.to_owned()];
    header.extend(["p50", "p90", "p99", "last"].map(str::to_owned));
    if table.has_never {
        header.push("never".to_owned());
    }
    let rows = rows.map(|(row, change, count)| line(row, change, count, table));
    let mut lines = vec![bold(title, options)];
    lines.extend(drawn_table(&header, rows, options));
    lines.push(String::new());
    lines
}

/// An estimate without its interval: terminal tables are narrow.
fn short(interval: &Interval) -> String {
    interval.estimate.clone()
}

fn complete(row: &FleetRow) -> String {
    match row.never {
        0 => short(&row.converged),
        never => format!("{}, {never} never", short(&row.converged)),
    }
}

fn line(row: &FleetRow, change: &ChangeRow, count: &str, table: &FleetTable) -> Vec<String> {
    let name =
        if table.rows.len() > 1 { format!("{}, {}", row.label, change.name) } else { change.name.clone() };
    let mut cells = vec![plain(&name), count.to_owned()];
    let times = &change.reached;
    cells.extend([&times.p50, &times.p90, &times.p99, &times.last].map(short));
    if table.has_never {
        cells.push(change.never.to_string());
    }
    cells
}
