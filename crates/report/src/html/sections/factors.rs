//! Figures against a factor: the fastest-varying one whose values are numbers is the horizontal axis, and each combination
//! of the others with a level of load has a chart of its own.

use super::context::{Context, Figure};
use crate::format::{Interval, TimeUnit};
use crate::html::charts::lines::{Axes, Point, Series, chart};
use crate::html::style::ModeStyle;
use crate::table::Difference;
use experiment::definition::Factor;
use experiment::schema::{BACKGROUND_SERVICES, Cell, Conditions, Estimate, FactorEffect, SizedFigure};
use serde::Serialize;
use std::cmp::Ordering;

/// With more charts than this, the others are folded away.
const MAX_OPEN_CHARTS: usize = 12;

/// Charts, and what rises with the factor.
#[derive(Debug, Serialize)]
pub struct FactorSection {
    /// The factor on the axis.
    against: String,
    /// The other factors; empty where there are none.
    panels: String,
    charts: Vec<Figure>,
    folded: Vec<Figure>,
    /// Its least and greatest value, as typed.
    least: String,
    greatest: String,
    columns: Vec<String>,
    changes: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    /// Class of the mode's colour.
    class: &'static str,
    name: String,
    /// One per column; empty where there is no such figure.
    values: Vec<String>,
}

/// A figure of cells that is drawn.
struct Drawn<'a> {
    id: &'a str,
    caption: &'a str,
    unit: &'a str,
    /// The figure, and as text.
    read: &'a dyn Fn(&Cell) -> Option<(Estimate, String)>,
}

/// Absent where no factor has numbers for values.
pub fn factors(context: &Context) -> Option<FactorSection> {
    let all = &context.run.experiment.factors;
    let against = all.iter().rfind(|factor| is_numeric(factor))?;
    let others: Vec<&str> =
        all.iter().map(|factor| factor.key.as_str()).filter(|key| *key != against.key).collect();
    let cells = &context.run.summary.cells;
    let times = cells.iter().filter_map(|cell| Some(cell.response_time_us?.p50?.estimate));
    let unit = TimeUnit::for_times(times);
    let time = |percentile: Option<Estimate>| {
        let estimate = percentile?;
        Some((estimate.map(|us| us / unit.us()), unit.interval(&estimate).text_with_unit(unit.symbol())))
    };
    let median = |cell: &Cell| time(cell.response_time_us.and_then(|times| times.p50));
    let p90 = |cell: &Cell| time(cell.response_time_us.and_then(|times| times.p90));
    let p99 = |cell: &Cell| time(cell.response_time_us.and_then(|times| times.p99));
    let rate = |cell: &Cell| {
        let rate = cell.rate_completed.filter(|_| cell.load.rate.is_none())?;
        Some((rate, format!("{} requests/s", Interval::new(&rate).text())))
    };
    let drawn = [
        Drawn { id: "rate", caption: "Throughput", unit: "/s", read: &rate },
        Drawn { id: "median", caption: "Median response time", unit: unit.symbol(), read: &median },
        Drawn { id: "p90", caption: "90th percentile of response time", unit: unit.symbol(), read: &p90 },
        Drawn { id: "p99", caption: "99th percentile of response time", unit: unit.symbol(), read: &p99 },
    ];
    let mut charts: Vec<Figure> = drawn.iter().flat_map(|drawn| figures(context, against, drawn)).collect();
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
        columns: CHANGES.iter().map(|(_, name)| format!("{name}, {}", unit.symbol())).collect(),
        // The size of the mesh has a section of its own.
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

/// A chart per combination of the other factors and level of load that has two values or more.
fn figures(context: &Context, against: &Factor, drawn: &Drawn<'_>) -> Vec<Figure> {
    let mut panels: Vec<(String, Vec<Conditions<'_>>)> = Vec::new();
    for at in context.conditions.all() {
        let label = context.conditions.label_without(at, &against.key);
        match panels.iter_mut().find(|(known, _)| *known == label) {
            Some((_, conditions)) => conditions.push(at),
            None => panels.push((label, vec![at])),
        }
    }
    let with_series = panels.into_iter().filter_map(|(label, conditions)| {
        let series: Vec<Series> = context
            .modes
            .iter()
            .map(|mode| {
                let cells = conditions.iter().flat_map(|at| context.cells_of(*at));
                let points =
                    cells.filter(|cell| cell.mode == *mode).filter_map(|cell| point(cell, against, drawn));
                Series { mode: *mode, points: points.collect() }
            })
            .filter(|series| series.points.len() > 1)
            .collect();
        (!series.is_empty()).then_some((label, series))
    });
    let panels: Vec<(String, Vec<Series>)> = with_series.collect();
    let axes = Axes::new(panels.iter().flat_map(|(_, series)| series), &against.key, drawn.unit);
    let figure = |(index, (label, series)): (usize, &(String, Vec<Series>))| {
        let caption = format!("{} at {label}", drawn.caption);
        let id = format!("factor-{}-{index}", drawn.id);
        Figure { svg: chart(&id, &format!("{caption} against {}", against.key), series, &axes), caption }
    };
    panels.iter().enumerate().map(figure).collect()
}

fn point(cell: &Cell, against: &Factor, drawn: &Drawn<'_>) -> Option<Point> {
    let value = cell.factors.get(&against.key)?;
    let (estimate, text) = (drawn.read)(cell)?;
    Some(Point {
        at: value.quantity(&against.key)?,
        estimate: estimate.estimate,
        interval: estimate.low.zip(estimate.high),
        text: format!("{} {value} {text}", against.key),
    })
}

const CHANGES: [(SizedFigure, &str); 3] = [
    (SizedFigure::ResponseTimeP50Us, "p50"),
    (SizedFigure::ResponseTimeP99Us, "p99"),
    (SizedFigure::ProxiesCpuCoresPer1000Rps, "CPU of all proxies per request"),
];

/// A row per mode under each load, with the other factors held.
fn changes(context: &Context, against: &Factor, unit: TimeUnit) -> Vec<Row> {
    let effects: Vec<&FactorEffect> =
        context.run.summary.factor_effects.iter().filter(|effect| effect.factor == against.key).collect();
    let medians = effects.iter().filter(|effect| effect.figure == SizedFigure::ResponseTimeP50Us);
    medians
        .filter_map(|median| {
            let load = median.load.as_ref()?;
            let value = |(figure, _): &(SizedFigure, &str)| {
                let same = |effect: &&&FactorEffect| {
                    effect.figure == *figure
                        && (effect.mode, &effect.factors, &effect.load)
                            == (median.mode, &median.factors, &median.load)
                };
                effects.iter().find(same).map_or_else(String::new, |effect| {
                    Difference::new((&in_us(effect), effect.judged()), unit).text()
                })
            };
            let at = Conditions { factors: &median.factors, load };
            Some(Row {
                class: ModeStyle::of(median.mode).class,
                name: format!("{} at {}", median.mode, context.conditions.label_without(at, &against.key)),
                values: CHANGES.iter().map(value).collect(),
            })
        })
        .collect()
}

/// A difference in microseconds: cores per 1000 requests/s are milliseconds per request.
fn in_us(effect: &FactorEffect) -> Estimate {
    let factor = if effect.figure == SizedFigure::ProxiesCpuCoresPer1000Rps { 1e3 } else { 1.0 };
    effect.from_least_to_greatest.map(|difference| difference * factor)
}
