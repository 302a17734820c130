//! Charts of a figure against a factor: a line for each mode, with the interval of each estimate.

use super::WIDTH;
use crate::format;
use crate::html::style::ModeStyle;
use crate::svg::scale::Scale;
use crate::svg::{Anchor, Drawing, text_width};
use experiment::Mode;

const HEIGHT: f64 = 236.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 40.0;

/// Estimates of one mode.
#[derive(Debug)]
pub struct Series {
    /// The mode.
    pub mode: Mode,
    /// In the order of the factor's values.
    pub points: Vec<Point>,
}

/// One estimate; figures in the unit of the axis.
#[derive(Debug)]
pub struct Point {
    /// The factor's value.
    pub at: f64,
    /// The estimate; absent where it is beyond every axis, as among requests without a response.
    pub estimate: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// The estimate in words.
    pub text: String,
}

/// Axes that several charts share, so that they can be compared.
#[derive(Debug)]
pub struct Axes {
    factor: Scale,
    figures: Scale,
    /// The factor's key.
    against: String,
    unit: String,
}

impl Axes {
    /// Axes that hold all these points.
    pub fn new<'a>(series: impl Iterator<Item = &'a Series>, against: &str, unit: &str) -> Self {
        let (mut values, mut figures) = (Vec::new(), Vec::new());
        for point in series.flat_map(|series| &series.points) {
            values.push(point.at);
            figures.extend(point.estimate);
            figures.extend(point.interval.into_iter().flat_map(|(low, high)| [low, high]));
        }
        // A value of zero has no place on a logarithmic axis.
        let factor = if values.contains(&0.0) {
            Scale::linear(values, (LEFT + 6.0, RIGHT))
        } else {
            Scale::fitting(&values, (LEFT + 6.0, RIGHT))
        };
        Self {
            factor,
            figures: Scale::linear(figures, (BOTTOM, TOP)),
            against: against.to_owned(),
            unit: unit.to_owned(),
        }
    }
}

/// One chart.
pub fn chart(id: &str, title: &str, all: &[Series], axes: &Axes) -> String {
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    draw_axes(&mut drawing, axes);
    for series in all {
        draw_band(&mut drawing, series, axes);
    }
    draw_tips(&mut drawing, all, axes);
    for series in all {
        let style = ModeStyle::of(series.mode);
        let place = |at: f64, figure: f64| (axes.factor.place(at), axes.figures.place(figure));
        for known in series.points.split(|point| point.estimate.is_none()) {
            let points = known.iter().filter_map(|point| Some(place(point.at, point.estimate?)));
            drawing.polyline(&points.collect::<Vec<_>>(), &format!("curve {}", style.class));
        }
        for point in &series.points {
            if let Some((low, high)) = point.interval {
                drawing.line(
                    place(point.at, low),
                    place(point.at, high),
                    &format!("whisker {}", style.class),
                );
            }
            let tip = format!("{}: {}", series.mode, point.text);
            let (shape, at) = match point.estimate {
                Some(estimate) => ("mark", place(point.at, estimate)),
                None => ("hollow", (axes.factor.place(point.at), TOP)),
            };
            drawing.marker(style.marker, at, 3.6, &format!("{shape} {}", style.class), &tip);
        }
    }
    drawing.finish(id, title, &description(all))
}

/// Every figure at a value of the factor, shown on pointing anywhere above or below it.
fn draw_tips(drawing: &mut Drawing, all: &[Series], axes: &Axes) {
    let mut values: Vec<f64> = all.iter().flat_map(|series| &series.points).map(|point| point.at).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let places: Vec<f64> = values.iter().map(|at| axes.factor.place(*at)).collect();
    for (index, at) in values.iter().enumerate() {
        let here = |series: &Series| {
            let point = series.points.iter().find(|point| point.at == *at)?;
            Some(format!("{}: {}", series.mode, point.text))
        };
        let tip: Vec<String> = all.iter().filter_map(here).collect();
        drawing.strip(&places, index, (LEFT, RIGHT), (TOP, BOTTOM), &tip.join("; "));
    }
}

/// The intervals of a series as an area, where every point has one.
fn draw_band(drawing: &mut Drawing, series: &Series, axes: &Axes) {
    let intervals = series.points.iter().map(|point| Some((point.at, point.interval?)));
    let Some(intervals) = intervals.collect::<Option<Vec<_>>>().filter(|all| all.len() > 1) else { return };
    let place = |at: f64, figure: f64| (axes.factor.place(at), axes.figures.place(figure));
    let lower = intervals.iter().map(|(at, (low, _))| place(*at, *low));
    let upper = intervals.iter().rev().map(|(at, (_, high))| place(*at, *high));
    let corners: Vec<(f64, f64)> = lower.chain(upper).collect();
    drawing.polygon(&corners, &format!("band {}", ModeStyle::of(series.mode).class));
}

fn draw_axes(drawing: &mut Drawing, axes: &Axes) {
    for tick in axes.figures.ticks(6) {
        let y = axes.figures.place(tick);
        drawing.line((LEFT, y), (RIGHT, y), "grid");
        drawing.text((LEFT - 6.0, y + 3.5), Anchor::End, "tick", &format::tick(tick));
    }
    for tick in axes.factor.ticks(7) {
        let x = axes.factor.place(tick);
        drawing.line((x, BOTTOM), (x, BOTTOM + 4.0), "axis");
        let text = format::tick(tick);
        let within = x.min(WIDTH - text_width(&text) / 2.0 - 3.0);
        drawing.text((within, BOTTOM + 16.0), Anchor::Middle, "tick", &text);
    }
    drawing.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    drawing.text((LEFT - 6.0, 12.0), Anchor::End, "tick unit", &axes.unit);
    drawing.text(((LEFT + RIGHT) / 2.0, HEIGHT - 6.0), Anchor::Middle, "tick", &axes.against);
}

fn description(all: &[Series]) -> String {
    let texts = all.iter().map(|series| {
        let points: Vec<&str> = series.points.iter().map(|point| point.text.as_str()).collect();
        format!("{}: {}.", series.mode, points.join(", "))
    });
    texts.collect::<Vec<_>>().join(" ")
}
