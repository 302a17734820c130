//! Figures that noise of the machine keeps out of the estimates.

use super::style::{Options, wrap};
use super::tables;
use crate::disturbed::{self, MEANING};
use results::Summary;

/// A table of cells, and those of drivers, services and calls; empty without disturbed figures.
pub(super) fn lines(summary: &Summary, options: Options) -> Vec<String> {
    let of_kind = |one: &disturbed::DisturbedTable| {
        if one.by_cell {
            tables::section(one.heading, &one.table, "report.html", options)
        } else {
            tables::listed(one.heading, &one.table, options)
        }
    };
    let tables = disturbed::tables(summary);
    let mut lines: Vec<String> = tables.iter().flat_map(of_kind).collect();
    if !lines.is_empty() {
        // Below the heading of the first table.
        lines.splice(1..1, wrap(MEANING, options.width));
    }
    lines
}
