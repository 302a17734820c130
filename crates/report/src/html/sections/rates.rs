//! Latency and CPU against the rate, or against the clients of a closed loop, with the other factors fixed.

use super::against::{Against, Panel, charts, drawn};
use super::context::{Chart, Context};
use experiment::file::label::setting;
use results::{Cell, Conditions, Figure, LoadPoint};
use serde::Serialize;

/// Further charts are collapsed.
const MAX_OPEN_CHARTS: usize = 4;

/// Charts of each figure.
#[derive(Debug, Serialize)]
pub struct RateSection {
    /// Horizontal axis: `rate` or `clients`.
    against: &'static str,
    charts: Vec<Chart>,
    folded: Vec<Chart>,
}

/// `None` if no mode was measured under two levels of load that differ in nothing else.
pub fn rates(context: &Context) -> Option<RateSection> {
    let is_closed = context.run.summary.cells.iter().all(|cell| cell.load.rate.is_none());
    let panels = panels(context, is_closed);
    let name = if is_closed { "clients" } else { "rate" };
    let read =
        |cell: &Cell| Some((level(&cell.load, is_closed)?, context.conditions.level(cell.conditions())));
    let axis = if is_closed { "clients" } else { "requests/s offered" };
    let against = Against { id: "rate", name, axis, read: &read };
    let times = [(Figure::P50, "median", "Median response time"), (Figure::P99, "p99", "99th percentile")];
    let drawn = drawn(context, &times);
    let all = drawn.iter().flat_map(|drawn| charts(context, &panels, &against, drawn));
    let mut charts: Vec<Chart> = all.collect();
    let folded = charts.split_off(charts.len().min(MAX_OPEN_CHARTS));
    (!charts.is_empty()).then_some(RateSection { against: name, charts, folded })
}

fn level(load: &LoadPoint, is_closed: bool) -> Option<f64> {
    if is_closed { load.clients.map(|clients| clients as f64) } else { load.rate }
}

/// One panel per combination of everything else.
fn panels<'a>(context: &'a Context<'_>, is_closed: bool) -> Vec<Panel<'a>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    let held = |at: &Conditions<'_>| {
        let connections = if is_closed { 0 } else { at.load.connections };
        let load = LoadPoint { rate: None, clients: None, connections, ..at.load.clone() };
        (at.factors.clone(), load)
    };
    for at in context.conditions.all().filter(|at| level(at.load, is_closed).is_some()) {
        match panels.iter_mut().find(|panel| held(&panel.conditions[0]) == held(&at)) {
            Some(panel) => panel.conditions.push(at),
            None => {
                let factors = at.factors.iter().map(|(key, value)| format!(", {}", setting(key, value)));
                panels.push(Panel { of: factors.collect(), conditions: vec![at] });
            }
        }
    }
    panels
}
