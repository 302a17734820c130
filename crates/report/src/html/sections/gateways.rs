//! Gateways: rates by each observer, and the gateways' own figures.

use super::context::{Chart, Context};
use crate::format::Interval;
use crate::gateways::GatewayTable;
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::style::ModeStyle;
use results::{Cell, Estimate};
use serde::Serialize;

/// Table and chart.
#[derive(Debug, Serialize)]
pub struct GatewaySection {
    table: GatewayTable,
    charts: Vec<Chart>,
}

/// `None` for a run without gateways.
pub fn gateways(context: &Context) -> Option<GatewaySection> {
    let table = GatewayTable::new(&context.run.summary)?;
    Some(GatewaySection { charts: chart(context).into_iter().collect(), table })
}

/// Requests per second by phase, as counted by each observer.
fn chart(context: &Context) -> Option<Chart> {
    let mut lines = Vec::new();
    for at in context.conditions.all() {
        let cells = context.cells_of(at).into_iter().filter(|cell| !cell.gateways.is_empty());
        let rows: Vec<Line> = cells.flat_map(rows).map(Line::Row).collect();
        if !rows.is_empty() {
            lines.push(Line::Heading(context.conditions.label(at)));
            lines.extend(rows);
        }
    }
    let chart = RowChart {
        axis: "requests per second".to_owned(),
        lines,
        shared: Vec::new(),
        may_be_logarithmic: false,
    };
    let caption = "Requests per second by phase, as each observer counted them".to_owned();
    let draw = |width, id: &str| chart.draw_in(width, id, &caption);
    (!chart.lines.is_empty()).then(|| Chart::in_row(caption.clone(), "gateway-rates", true, draw))
}

fn rows(cell: &Cell) -> Vec<Row> {
    let Some(rates) = cell.rates else { return Vec::new() };
    let style = ModeStyle::for_mode(cell.mode);
    let row = |(observer, rate): (&str, Option<Estimate>)| {
        let rate = rate?;
        Some(Row {
            label: format!("{} · {observer}", cell.mode),
            symbol: Some((style.marker, style.class)),
            value: Interval::new(&rate).text_with_unit("/s"),
            mark: Mark::Whisker {
                estimate: rate.estimate,
                interval: rate.low.zip(rate.high),
                marker: style.marker,
                class: style.class,
            },
        })
    };
    let observers = [
        ("generator", Some(rates.generator)),
        ("gateway", rates.gateway),
        ("destination", rates.destination),
    ];
    observers.into_iter().filter_map(row).collect()
}
