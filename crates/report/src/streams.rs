//! Streams of tokens: the first token, the tokens after it, and what they cost: the same figures for the terminal and for
//! HTML.

use crate::conditions::ConditionLabels;
use crate::differences::difference;
use crate::format::{self, Interval, TimeUnit};
use crate::marks::mark;
use crate::table::Difference;
use crate::tables::{Column, Group, Table, TableCell, TableRow};
use results::{Cell, Clock, Estimate, Figure, Percentiles, StreamSummary, Summary};
use serde::Serialize;

/// Percentiles of the first tokens.
const FIRSTS: [Figure; 2] = [Figure::P50, Figure::P99];

/// Every cell with streams.
#[derive(Clone, Debug, Serialize)]
pub struct StreamTable {
    /// Unit of the first tokens.
    pub first_unit: &'static str,
    /// Unit of the times between tokens, and of what is added to them.
    pub gap_unit: &'static str,
    /// One group per load, one row per mode.
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
        let row = |cell: &Cell, streams: &StreamSummary| -> TableRow {
            let mut row: TableRow = vec![cell.mode.name().into()];
            let firsts = times(streams.first_event_us.as_ref(), &FIRSTS, first_unit).zip(FIRSTS);
            row.extend(firsts.map(|(shown, figure)| shown.starred(is_marked(cell, figure))));
            let gaps = [Figure::P50, Figure::P99, Figure::Max];
            row.extend(times(streams.event_gap_us.as_ref(), &gaps, gap_unit));
            row.extend(compares.then(|| {
                let added = streams.added.and_then(|added| added.event_gap_us.judged(Figure::P99));
                difference(added, |by| Difference::new(by, gap_unit))
            }));
            let [rate, cpu_s] = StreamSummary::METRICS.map(|metric| streams.estimates.get(metric));
            let in_ms = |cpu_s: &Estimate| Interval::scaled(cpu_s, 1000.0);
            row.extend([TableCell::figure(rate, Interval::new), TableCell::figure(cpu_s, in_ms)]);
            row
        };
        let group = |at| {
            let of_load = cells().filter(|(cell, _)| cell.conditions() == at);
            Group::new(labels.label(at), of_load.map(|(cell, streams)| row(cell, streams)).collect())
        };
        let groups: Vec<Group> = labels.all().map(group).filter(|group| !group.rows.is_empty()).collect();
        (!groups.is_empty()).then(|| Self {
            first_unit: first_unit.symbol(),
            gap_unit: gap_unit.symbol(),
            table: Table { columns: columns(first_unit.symbol(), gap_unit.symbol(), compares), groups },
        })
    }
}

fn columns(first: &str, gap: &str, compares: bool) -> Vec<Column> {
    let number = |html: &str, terminal: &str| Column::number(html).terminal(terminal);
    let mut columns = vec![
        Column::name("Mode").terminal("mode"),
        number("First token, median", &format!("first p50, {first}")),
        number("First token, p99", &format!("first p99, {first}")),
        number("Between tokens, median", &format!("gap p50, {gap}")).wide(),
        number("Between tokens, p99", &format!("gap p99, {gap}")),
        number("Between tokens, longest", &format!("longest, {gap}")),
    ];
    columns
        .extend(compares.then(|| number("Added between tokens, p99", &format!("added to gap p99, {gap}"))));
    columns.extend([
        number("Tokens per second", "tokens/s"),
        number("Proxy CPU per 1000 tokens, ms", "CPU per 1000, ms"),
    ]);
    columns
}

fn times<'a>(
    times: Option<&'a Percentiles>,
    figures: &'a [Figure],
    unit: TimeUnit,
) -> impl Iterator<Item = TableCell> + 'a {
    figures.iter().map(move |figure| match times {
        Some(_) => unit.percentile(times, *figure).into(),
        None => format::ABSENT.into(),
    })
}

/// True if the table of all cells marks this percentile of the first tokens.
fn is_marked(cell: &Cell, figure: Figure) -> bool {
    let times = cell.times(Clock::FirstEvent);
    let n = times.and_then(|times| times.figure(figure)).map_or(0, |estimate| estimate.n);
    let is_censored = times.is_some_and(|times| times.censored(figure).is_some());
    !is_censored && mark(cell, figure, n).is_some_and(|mark| mark.is_notable(cell.valid))
}
