//! Response times of the calls between services, with the modes side by side.

use super::context::{Chart, Context};
use crate::edges::{EdgeGroup, edge_groups, unit};
use crate::format::TimeUnit;
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use results::{Cell, Conditions, Figure};

/// Maximum number of edges in a chart: the slowest ones.
const MAX_EDGES: usize = 12;

/// One chart per load, with copies of an edge combined; empty if services call no others.
pub fn charts(context: &Context) -> Vec<Chart> {
    let cells: Vec<&Cell> = context.run.summary.cells.iter().filter(|cell| !cell.edges.is_empty()).collect();
    let unit = unit(&cells);
    let charts = context.conditions.all().filter_map(|at| Some((at, chart(context, at, unit)?)));
    let charts: Vec<(Conditions<'_>, RowChart)> = charts.collect();
    let figure = |(index, (at, chart)): (usize, &(Conditions<'_>, RowChart))| {
        let draw = |width, id: &str| chart.draw_in(width, id, "Response time of calls between services");
        let caption = format!("Median of each call at {}", context.conditions.label(*at));
        Chart::in_row(caption, &format!("edges-{index}"), charts.len() == 1, draw)
    };
    charts.iter().enumerate().map(figure).collect()
}

fn chart(context: &Context, at: Conditions<'_>, unit: TimeUnit) -> Option<RowChart> {
    let cells: Vec<(&Cell, Vec<EdgeGroup<'_>>)> =
        context.cells_of(at).into_iter().map(|cell| (cell, edge_groups(cell))).collect();
    let mut ends: Vec<(&str, &str)> = Vec::new();
    for group in cells.iter().rev().flat_map(|(_, groups)| groups) {
        if ends.len() < MAX_EDGES && !ends.contains(&group.ends()) {
            ends.push(group.ends());
        }
    }
    let mut lines = Vec::new();
    for ends in ends {
        let of_modes = cells
            .iter()
            .filter_map(|(cell, groups)| Some((*cell, groups.iter().find(|group| group.ends() == ends)?)));
        let rows: Vec<Line> =
            of_modes.filter_map(|(cell, group)| Some(Line::Row(row(cell, group, unit)?))).collect();
        if !rows.is_empty() {
            lines.push(Line::Heading(format!("{} → {}", ends.0, ends.1)));
            lines.extend(rows);
        }
    }
    let axis = format!("{} that the caller saw", unit.symbol());
    let chart = RowChart { axis, lines, shared: Vec::new(), may_be_logarithmic: true };
    (!chart.lines.is_empty()).then_some(chart)
}

fn row(cell: &Cell, group: &EdgeGroup<'_>, unit: TimeUnit) -> Option<Row> {
    let style = ModeStyle::for_mode(cell.mode);
    let scaled = |us: f64| us / unit.us();
    let spread = group.spread(|times| times.p50)?;
    let interval = match group.edges.as_slice() {
        [only] => only.response_time_us.and_then(|times| times.p50?.low.zip(times.p50?.high)),
        _ => Some((spread.least, spread.greatest)),
    };
    let p99 = group.time(Figure::P99, unit);
    Some(Row {
        label: cell.mode.name().to_owned(),
        symbol: Some((style.marker, style.class)),
        value: format!("{}, p99 {}", group.time(Figure::P50, unit).text(), p99.estimate),
        mark: Mark::Whisker {
            estimate: scaled(spread.median),
            interval: interval.map(|(low, high)| (scaled(low), scaled(high))),
            marker: style.marker,
            class: style.class,
        },
    })
}
