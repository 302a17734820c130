//! Response time by percentile, and what each mode adds.

use super::context::{Chart, Context};
use crate::format::TimeUnit;
use crate::html::charts::WIDTH;
use crate::html::charts::percentiles::{Axes, Subject, chart};
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::curves::Curve;
use crate::html::style::ModeStyle;
use crate::table::{Difference, floor};
use results::Figure;
use serde::Serialize;

/// Percentile curves, one chart per load.
#[derive(Debug, Serialize)]
pub struct PercentileSection {
    charts: Vec<Chart>,
    logarithmic: bool,
    of_streams: bool,
    /// True if the service time is a different curve somewhere.
    service_differs: bool,
    /// Cells without a curve, with the reason.
    unreadable: Vec<String>,
}

pub fn percentiles(context: &Context) -> Option<PercentileSection> {
    let (mut curves, mut unreadable) = (Vec::new(), Vec::new());
    for at in context.conditions.all() {
        for mode in &context.modes {
            match Curve::of_cell(at.cell(*mode), &context.trials) {
                Ok(curve) => curves.extend(curve),
                Err(error) => {
                    unreadable.push(format!("{mode} at {}: {error}", context.conditions.label(at)));
                }
            }
        }
    }
    if curves.is_empty() && unreadable.is_empty() {
        return None;
    }
    let of_loads = context.conditions.comparable().map(|at| {
        let of_load: Vec<&Curve> = curves.iter().filter(|curve| curve.conditions().covers(at)).collect();
        (context.conditions.label(at), of_load)
    });
    let of_loads: Vec<(String, Vec<&Curve>)> = of_loads.filter(|(_, curves)| !curves.is_empty()).collect();
    let axes = Axes::new(&curves, WIDTH);
    let of_streams = curves.iter().any(|curve| curve.load.stream.is_some());
    let subject = if of_streams { Subject::FirstTokens } else { Subject::Requests };
    let figure = |(index, (label, of_load)): (usize, &(String, Vec<&Curve>))| {
        let draw = |width, id: &str| chart(id, label, of_load, &axes.in_width(width), subject);
        Chart::in_row(label.clone(), &format!("percentiles-{index}"), of_loads.len() == 1, draw)
    };
    let charts = of_loads.iter().enumerate().map(figure).collect();
    Some(PercentileSection {
        charts,
        logarithmic: axes.is_logarithmic(),
        of_streams,
        service_differs: curves.iter().any(Curve::service_differs),
        unreadable,
    })
}

/// What each mode adds to its baseline, one chart per percentile; `None` if nothing can be compared.
pub fn added(context: &Context) -> Option<Vec<Chart>> {
    let percentiles =
        [("Median", Figure::P50), ("90th percentile", Figure::P90), ("99th percentile", Figure::P99)];
    let differences = context.run.summary.cells.iter().filter_map(|cell| cell.leading_added());
    let unit = TimeUnit::for_times(differences.flat_map(|added| {
        percentiles.into_iter().filter_map(move |(_, figure)| Some(added.judged(figure)?.0.estimate))
    }));
    let figures: Vec<Chart> = percentiles
        .into_iter()
        .filter_map(|(caption, figure)| {
            let name = figure.name();
            let chart = added_chart(context, figure, unit)?;
            let svg = chart.draw(&format!("added-{name}"), &format!("Added latency: {caption}"));
            Some(Chart::new(caption.to_owned(), svg))
        })
        .collect();
    (!figures.is_empty()).then_some(figures)
}

fn added_chart(context: &Context, figure: Figure, unit: TimeUnit) -> Option<RowChart> {
    let mut lines = Vec::new();
    for at in context.conditions.all() {
        let rows: Vec<Line> = context
            .cells_of(at)
            .into_iter()
            .filter_map(|cell| Some((cell.mode, cell.leading_added()?.judged(figure)?)))
            .map(|(mode, (estimate, verdict))| {
                let style = ModeStyle::for_mode(mode);
                Line::Row(Row {
                    label: mode.name().to_owned(),
                    symbol: Some((style.marker, style.class)),
                    value: Difference::new((&estimate, verdict), unit).text_with_unit(unit.symbol()),
                    mark: Mark::Whisker {
                        estimate: estimate.estimate / unit.us(),
                        interval: estimate
                            .low
                            .zip(estimate.high)
                            .map(|(low, high)| (low / unit.us(), high / unit.us())),
                        marker: style.marker,
                        class: style.class,
                    },
                })
            })
            .collect();
        if !rows.is_empty() {
            lines.push(Line::Heading(context.conditions.label(at)));
            lines.extend(rows);
        }
    }
    let axis =
        format!("added to the {} of {}, {}", figure.name(), floor(&context.run.summary), unit.symbol());
    (!lines.is_empty()).then_some(RowChart { axis, lines, shared: Vec::new(), may_be_logarithmic: false })
}
