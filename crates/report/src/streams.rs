//! Streams of tokens: the first token, the tokens after it, and what they cost: the same figures for the terminal and for
//! HTML.

use crate::conditions::ConditionLabels;
use crate::differences::difference;
use crate::format::{self, Interval, TimeUnit};
use crate::table::Difference;
use crate::tables::{Column, Group, Table, TableCell, TableRow};
use results::{AddedLatency, Cell, Clock, Estimate, Figure, Metric, Percentiles, StreamSummary, Summary};
use serde::Serialize;

/// Every cell with streams.
#[derive(Clone, Debug, Serialize)]
pub struct StreamTable {
    /// Unit of the first tokens.
    pub first_unit: &'static str,
    /// Unit of the times between tokens, and of what is added to them.
    pub gap_unit: &'static str,
    /// One row per cell.
    pub table: Table,
}

impl StreamTable {
    /// `None` for a run without streams.
    #[must_use]
    pub fn new(summary: &Summary) -> Option<Self> {
        let cells = || summary.cells.iter().filter_map(|cell| Some((cell, cell.streams.as_ref()?)));
        let unit = |clock: Clock, figure: Figure| {
            TimeUnit::for_times(
                cells().filter_map(|(cell, _)| Some(cell.times(clock)?.figure(figure)?.estimate)),
            )
        };
        let (first_unit, gap_unit) =
            (unit(Clock::FirstEvent, Figure::P50), unit(Clock::EventGap, Figure::P99));
        let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
        let compares = cells().any(|(_, streams)| streams.added.is_some());
        let row = |(cell, streams): (&Cell, &StreamSummary)| -> TableRow {
            let mut row: TableRow = vec![labels.label(cell.conditions()).into(), cell.mode.name().into()];
            row.extend(times(streams.first_event_us.as_ref(), &[Figure::P50, Figure::P99], first_unit));
            row.extend(
                compares.then(|| added(streams, Figure::P99, first_unit, |added| added.first_event_us)),
            );
            row.extend(times(
                streams.event_gap_us.as_ref(),
                &[Figure::P50, Figure::P99, Figure::Max],
                gap_unit,
            ));
            row.extend(compares.then(|| added(streams, Figure::P99, gap_unit, |added| added.event_gap_us)));
            let estimate = |metric, read: fn(&Estimate) -> Interval| {
                TableCell::figure(streams.estimates.get(metric), read)
            };
            row.extend([
                estimate(Metric::EventsPerS, Interval::new),
                estimate(Metric::ProxiesCpuSPer1000Events, |cpu_s| Interval::scaled(cpu_s, 1000.0)),
            ]);
            row
        };
        let rows: Vec<TableRow> = cells().map(row).collect();
        (!rows.is_empty()).then(|| Self {
            first_unit: first_unit.symbol(),
            gap_unit: gap_unit.symbol(),
            table: Table {
                columns: columns(first_unit.symbol(), gap_unit.symbol(), compares),
                groups: vec![Group::new(String::new(), rows)],
            },
        })
    }
}

fn columns(first: &str, gap: &str, compares: bool) -> Vec<Column> {
    let number = |html: &str, terminal: &str| Column::number(html).terminal(terminal);
    let mut columns = vec![
        Column::text("Load").terminal("load"),
        Column::name("Mode").terminal("mode"),
        number("First token, median", &format!("first p50, {first}")),
        number("First token, p99", &format!("first p99, {first}")).wide(),
    ];
    columns.extend(compares.then(|| number("Added to its p99", &format!("added p99, {first}")).wide()));
    columns.extend([
        number("Between tokens, median", &format!("gap p50, {gap}")),
        number("Between tokens, p99", &format!("gap p99, {gap}")),
        number("Longest", &format!("longest, {gap}")).wide(),
    ]);
    columns.extend(compares.then(|| number("Added between tokens, p99", &format!("added p99, {gap}"))));
    columns.extend([
        number("Tokens per second", "tokens/s"),
        number("Proxy CPU per 1000 tokens, ms", "CPU per 1000, ms"),
    ]);
    columns
}

fn times(
    times: Option<&Percentiles>,
    figures: &'static [Figure],
    unit: TimeUnit,
) -> impl Iterator<Item = TableCell> {
    figures.iter().map(move |figure| match times {
        Some(_) => unit.percentile(times, *figure).into(),
        None => format::ABSENT.into(),
    })
}

fn added(
    streams: &StreamSummary,
    figure: Figure,
    unit: TimeUnit,
    of: fn(&results::AddedStreamTimes) -> AddedLatency,
) -> TableCell {
    let judged = streams.added.as_ref().and_then(|added| of(added).judged(figure));
    difference(judged, |by| Difference::new(by, unit))
}
