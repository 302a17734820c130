//! Figures against a factor. The horizontal axis is the fastest-varying numeric factor; each combination of
//! the other factors and a level of load has its own chart.

use super::against::{Against, Panel, charts, drawn};
use super::context::{Chart, Context, ModeRow};
use crate::format::TimeUnit;
use crate::table::Difference;
use experiment::definition::Factor;
use results::{BACKGROUND_SERVICES, Cell, Conditions, Estimate, FactorEffect, Figure, Metric};
use serde::Serialize;
use std::cmp::Ordering;

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
    /// Smallest value, as written in the experiment.
    least: String,
    greatest: String,
    columns: Vec<String>,
    changes: Vec<ModeRow>,
}

/// `None` if no factor has numeric values.
pub fn factors(context: &Context) -> Option<FactorSection> {
    let all = &context.run.experiment.factors;
    let against = all.iter().rfind(|factor| is_numeric(factor))?;
    let others: Vec<&str> =
        all.iter().map(|factor| factor.key.as_str()).filter(|key| *key != against.key).collect();
    let read = |cell: &Cell| {
        let value = cell.factors.get(&against.key)?;
        Some((value.quantity(&against.key)?, format!("{} {value}", against.key)))
    };
    let drawn_against = Against { id: "factor", name: &against.key, axis: &against.key, read: &read };
    let panels = panels(context, against);
    let drawn = drawn(context, &TIMES);
    let all = drawn.iter().flat_map(|drawn| charts(context, &panels, &drawn_against, drawn));
    let mut charts: Vec<Chart> = all.collect();
    let times = context.run.summary.cells.iter();
    let unit = TimeUnit::for_times(times.filter_map(|cell| Some(cell.response_time_us?.p50?.estimate)));
    let folded = charts.split_off(charts.len().min(MAX_OPEN_CHARTS));
    let mut values: Vec<_> = against.values.iter().collect();
    values.sort_by(|one, other| {
        one.quantity(&against.key).partial_cmp(&other.quantity(&against.key)).unwrap_or(Ordering::Equal)
    });
    let (least, greatest) = (values.first()?, values.last()?);
    (!charts.is_empty()).then(|| FactorSection {
        against: against.key.clone(),
        panels: others.join(" and "),
        charts,
        folded,
        least: least.to_string(),
        greatest: greatest.to_string(),
        columns: CHANGES
            .iter()
            .map(|(figure, name)| match figure {
                Metric::ProxiesMemoryAnonymousBytes => format!("{name}, MB"),
                _ => format!("{name}, {}", unit.symbol()),
            })
            .collect(),
        // The size of the mesh has its own section.
        changes: if against.key == BACKGROUND_SERVICES {
            Vec::new()
        } else {
            changes(context, against, unit)
        },
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

const CHANGES: [(Metric, &str); 4] = [
    (Metric::ResponseTimeP50Us, "p50"),
    (Metric::ResponseTimeP99Us, "p99"),
    (Metric::ProxiesCpuCoresPer1000Rps, "CPU of all proxies per request"),
    (Metric::ProxiesMemoryAnonymousBytes, "anonymous memory of all proxies"),
];

/// One row per mode and load, with the other factors fixed.
fn changes(context: &Context, against: &Factor, unit: TimeUnit) -> Vec<ModeRow> {
    let effects: Vec<&FactorEffect> =
        context.run.summary.factor_effects.iter().filter(|effect| effect.factor == against.key).collect();
    let medians = effects.iter().filter(|effect| effect.figure == Metric::ResponseTimeP50Us);
    medians
        .filter_map(|median| {
            let load = median.load.as_ref()?;
            let value = |(figure, _): &(Metric, &str)| {
                let same = |effect: &&&FactorEffect| {
                    effect.figure == *figure
                        && (effect.mode, &effect.factors, &effect.load)
                            == (median.mode, &median.factors, &median.load)
                };
                effects.iter().find(same).map_or_else(String::new, |effect| {
                    let verdict = effect.verdict;
                    match figure {
                        Metric::ProxiesMemoryAnonymousBytes => {
                            Difference::megabytes((&effect.from_least_to_greatest, verdict)).text()
                        }
                        _ => Difference::new((&in_us(effect), verdict), unit).text(),
                    }
                })
            };
            let at = Conditions { factors: &median.factors, load };
            let name = format!("{} at {}", median.mode, context.conditions.label_without(at, &against.key));
            Some(ModeRow::new(median.mode, name, CHANGES.iter().map(value)))
        })
        .collect()
}

/// A difference in microseconds; cores per 1000 requests/s equal milliseconds per request.
pub(super) fn in_us(effect: &FactorEffect) -> Estimate {
    let factor = if effect.figure == Metric::ProxiesCpuCoresPer1000Rps { 1e3 } else { 1.0 };
    effect.from_least_to_greatest.map(|difference| difference * factor)
}
