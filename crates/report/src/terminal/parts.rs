//! Tables of a run beside those of its loads: each only if the run has it.

use super::style::{Options, WIDE, bold, wrap};
use super::{disturbed, footprint, tables};
use crate::clocks::ClockTable;
use crate::differences::{self, DifferenceTable};
use crate::drivers::DriverTable;
use crate::edges::EdgeTable;
use crate::fleets::FleetTable;
use crate::footprint::FootprintTable;
use crate::gateways::GatewayTable;
use crate::reservations::ReservationTable;
use crate::services::ServiceTable;
use crate::streams::StreamTable;
use crate::tables::Table;
use results::Summary;

/// Tables of streams, differences, fleets, clocks, drivers, services, calls, reservations, gateways and proxies.
pub(crate) fn parts(summary: &Summary, options: Options) -> String {
    let section = |heading: &str, table: &Table, all: &str| tables::section(heading, table, all, options);
    let listed = |heading: &str, table: &Table| tables::listed(heading, table, options);
    let sections = [
        StreamTable::new(summary).map(|streams| listed("Streams of tokens", &streams.table)),
        differences::added(summary).map(|table| listed(&differences::added_heading(summary), &table)),
        DifferenceTable::new(summary).map(|of| listed("Between values of factors", &of.table)),
        differences::effects(summary).map(|table| listed("Changes over factors", &table)),
        FleetTable::new(summary).map(|table| fleets(&table, options)),
        ClockTable::new(summary).map(|table| clocks(&table, options)),
        DriverTable::new(summary)
            .map(|drivers| section("Drivers", &drivers.table, "`meshmeter report DIR --drivers-csv FILE`")),
        ServiceTable::new(summary).map(|services| {
            section("Services", &services.table, "`meshmeter report DIR --services-csv FILE`")
        }),
        EdgeTable::new(summary).map(|edges| {
            section("Calls between services", &edges.table, "`meshmeter report DIR --edges-csv FILE`")
        }),
        ReservationTable::new(summary).map(|table| reservations(&table, options)),
        GatewayTable::new(summary).map(|table| gateways(&table, options)),
        FootprintTable::new(summary).map(|table| footprint::lines(&table, options)),
        Some(disturbed::lines(summary, options)),
    ];
    sections.into_iter().flatten().flatten().map(|line| line + "\n").collect()
}

/// One line per cell, and one line per kind of change.
fn fleets(table: &FleetTable, options: Options) -> Vec<String> {
    let unit = table.time_unit;
    let heading = "Fleets of simulated proxies, and the control plane";
    let mut lines = tables::flat(heading, &table.proxies, options);
    let heading = format!("Changes, from acknowledgement to arrival, {unit}");
    lines.extend(tables::flat(&heading, &table.changes, options));
    if table.outages.groups.iter().any(|group| !group.rows.is_empty()) {
        let heading = format!("Connections lost, until complete again, {unit}");
        lines.extend(tables::flat(&heading, &table.outages, options));
        if !table.reasons.is_empty() {
            // No blank line before the reasons.
            lines.pop();
            lines.extend(table.reasons.iter().flat_map(|reason| wrap(reason, options.width)));
            lines.push(String::new());
        }
    }
    lines
}

/// Corrected and uncorrected distributions of the cells in which they differ; empty without such a cell.
fn clocks(table: &ClockTable, options: Options) -> Vec<String> {
    let alike = table.alike();
    if alike == table.table.groups.len() {
        return Vec::new();
    }
    let others = if alike == 0 { "" } else { " In the other cells both agree within 10 %." };
    let text = format!(
        "Response time from the intended start (corrected) and from the actual send (uncorrected), by percentile.{others}"
    );
    let mut lines = vec![bold("Corrected and uncorrected", options)];
    lines.extend(wrap(&text, options.width));
    lines.extend(tables::groups(&table.table, options));
    lines.extend(table.notes.iter().flat_map(|note| wrap(note, options.width)));
    lines.extend((!table.notes.is_empty()).then(String::new));
    lines
}

fn reservations(table: &ReservationTable, options: Options) -> Vec<String> {
    let mut lines = vec![bold("Reserved against used", options)];
    lines.extend(tables::groups(&table.table, options));
    lines
}

/// One line per gateway, with the rates of the three observers.
fn gateways(table: &GatewayTable, options: Options) -> Vec<String> {
    let durations = if options.width >= WIDE { "; durations at p50/p90/p99" } else { "" };
    let heading = format!("Gateways: requests per second by observer{durations}");
    let mut lines = tables::flat(&heading, &table.gateways, options);
    let mut groups = table.gateways.groups.iter();
    let folded = groups.find_map(|group| Some((group.selection.as_deref()?, group.all.len())));
    if let Some((selection, all)) = folded {
        // No blank line before the note.
        lines.pop();
        lines.extend([format!("{selection} of {all}; report.html has all."), String::new()]);
    }
    lines
}
