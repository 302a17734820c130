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
    /// The estimate.
    pub estimate: f64,
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
            let (low, high) = point.interval.unwrap_or((point.estimate, point.estimate));
            values.push(point.at);
            figures.extend([point.estimate, low, high]);
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
    for series in all {
        let style = ModeStyle::of(series.mode);
        let place = |at: f64, figure: f64| (axes.factor.place(at), axes.figures.place(figure));
        let points: Vec<_> = series.points.iter().map(|point| place(point.at, point.estimate)).collect();
        drawing.polyline(&points, &format!("curve {}", style.class));
        for point in &series.points {
            if let Some((low, high)) = point.interval {
                drawing.line(
                    place(point.at, low),
                    place(point.at, high),
                    &format!("whisker {}", style.class),
                );
            }
            let tip = format!("{}: {}", series.mode, point.text);
            let class = format!("mark {}", style.class);
            drawing.marker(style.marker, place(point.at, point.estimate), 3.6, &class, &tip);
        }
    }
    drawing.finish(id, title, &description(all))
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
