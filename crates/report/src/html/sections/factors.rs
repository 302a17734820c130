//! Figures against a factor. The horizontal axis is the fastest-varying numeric factor; each combination of
//! the other factors and a level of load has its own chart.

use super::against::{Against, Panel, charts, drawn};
use super::context::{Chart, Context};
use crate::differences;
use crate::tables::Table;
use experiment::definition::Factor;
use experiment::file::label::{label, setting};
use results::{Cell, Figure};
use serde::Serialize;

/// Further charts are collapsed.
const MAX_OPEN_CHARTS: usize = 12;

/// Charts, and the effects of the factor.
#[derive(Debug, Serialize)]
pub struct FactorSection {
    /// The factor on the axis.
    against: String,
    /// The other factors; empty if there are none.
    panels: String,
    charts: Vec<Chart>,
    folded: Vec<Chart>,
    /// Changes of each factor.
    effects: Option<Table>,
}

/// `None` if no factor has numeric values.
pub fn factors(context: &Context) -> Option<FactorSection> {
    let all = &context.run.experiment.factors;
    let against = all.iter().rfind(|factor| is_numeric(factor))?;
    let others: Vec<String> =
        all.iter().map(|factor| factor.key.as_str()).filter(|key| *key != against.key).map(label).collect();
    let read = |cell: &Cell| {
        let value = cell.factors.get(&against.key)?;
        Some((value.quantity(&against.key)?, setting(&against.key, value)))
    };
    let name = label(&against.key);
    let drawn_against = Against { id: "factor", name: &name, axis: &name, read: &read };
    let panels = panels(context, against);
    let drawn = drawn(context, &TIMES);
    let all = drawn.iter().flat_map(|drawn| charts(context, &panels, &drawn_against, drawn));
    let mut charts: Vec<Chart> = all.collect();
    let folded = charts.split_off(charts.len().min(MAX_OPEN_CHARTS));
    (!charts.is_empty()).then(|| FactorSection {
        against: name.clone(),
        panels: others.join(" and "),
        charts,
        folded,
        effects: differences::effects(&context.run.summary),
    })
}

fn is_numeric(factor: &Factor) -> bool {
    factor.values.iter().all(|value| value.quantity(&factor.key).is_some())
}

/// One panel per combination of the other factors and level of load.
fn panels<'a>(context: &'a Context<'_>, against: &Factor) -> Vec<Panel<'a>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for at in context.conditions.all() {
        let of = format!(" at {}", context.conditions.label_without(at, &against.key));
        match panels.iter_mut().find(|known| known.of == of) {
            Some(panel) => panel.conditions.push(at),
            None => panels.push(Panel { of, conditions: vec![at] }),
        }
    }
    panels
}

/// Response times that are drawn.
const TIMES: [(Figure, &str, &str); 3] = [
    (Figure::P50, "median", "Median response time"),
    (Figure::P90, "p90", "90th percentile of response time"),
    (Figure::P99, "p99", "99th percentile of response time"),
];
