//! Charts of a figure against a factor: one line per mode, with the interval of each estimate.

use super::WIDTH;
use super::axes::{ACROSS, BOTTOM, HEIGHT, LEFT, RIGHT, TOP, UPWARDS};
use crate::html::style::ModeStyle;
use crate::svg::Drawing;
use crate::svg::scale::Scale;
use results::Mode;

pub use super::axes::Axes;

/// Estimates of one mode.
#[derive(Debug)]
pub struct Series {
    /// Mode of the line.
    pub mode: Mode,
    /// In the order of the factor's values.
    pub points: Vec<Point>,
}

/// One estimate; figures in the unit of the axis.
#[derive(Debug)]
pub struct Point {
    /// The factor's value.
    pub at: f64,
    /// The estimate; `None` if it is beyond every axis, such as among requests without a response.
    pub estimate: Option<f64>,
    /// Confidence interval of the estimate.
    pub interval: Option<(f64, f64)>,
    /// The estimate as text.
    pub text: String,
}

impl Axes {
    /// Axes that cover all these points.
    pub fn new<'a>(series: impl Iterator<Item = &'a Series>, against: &str, unit: &str) -> Self {
        let (mut values, mut figures) = (Vec::new(), Vec::new());
        for point in series.flat_map(|series| &series.points) {
            values.push(point.at);
            figures.extend(point.estimate);
            figures.extend(point.interval.into_iter().flat_map(|(low, high)| [low, high]));
        }
        // A value of zero has no position on a logarithmic axis.
        let across = if values.contains(&0.0) {
            Scale::linear(values, ACROSS)
        } else {
            Scale::fitting(&values, ACROSS)
        };
        Self {
            across,
            upwards: Scale::linear(figures, UPWARDS),
            against: against.to_owned(),
            unit: unit.to_owned(),
        }
    }
}

/// The chart as SVG.
pub fn chart(id: &str, title: &str, all: &[Series], axes: &Axes) -> String {
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    axes.draw(&mut drawing);
    for series in all {
        draw_band(&mut drawing, series, axes);
    }
    draw_tips(&mut drawing, all, axes);
    for series in all {
        let style = ModeStyle::for_mode(series.mode);
        let place = |at: f64, figure: f64| axes.place(at, figure);
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
                None => ("hollow", (axes.across.place(point.at), TOP)),
            };
            drawing.marker(style.marker, at, 3.6, &format!("{shape} {}", style.class), &tip);
        }
    }
    drawing.finish(id, title, &description(all))
}

/// Tooltips with every figure at a value of the factor, shown anywhere above or below it.
fn draw_tips(drawing: &mut Drawing, all: &[Series], axes: &Axes) {
    let mut values: Vec<f64> = all.iter().flat_map(|series| &series.points).map(|point| point.at).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let places: Vec<f64> = values.iter().map(|at| axes.across.place(*at)).collect();
    for (index, at) in values.iter().enumerate() {
        let here = |series: &Series| {
            let point = series.points.iter().find(|point| point.at == *at)?;
            Some(format!("{}: {}", series.mode, point.text))
        };
        let tip: Vec<String> = all.iter().filter_map(here).collect();
        drawing.strip(&places, index, (LEFT, RIGHT), (TOP, BOTTOM), &tip.join("; "));
    }
}

/// The intervals of a series as an area, if every point has one.
fn draw_band(drawing: &mut Drawing, series: &Series, axes: &Axes) {
    let intervals = series.points.iter().map(|point| Some((point.at, point.interval?)));
    let Some(intervals) = intervals.collect::<Option<Vec<_>>>().filter(|all| all.len() > 1) else { return };
    let place = |at: f64, figure: f64| axes.place(at, figure);
    let lower = intervals.iter().map(|(at, (low, _))| place(*at, *low));
    let upper = intervals.iter().rev().map(|(at, (_, high))| place(*at, *high));
    let corners: Vec<(f64, f64)> = lower.chain(upper).collect();
    drawing.polygon(&corners, &format!("band {}", ModeStyle::for_mode(series.mode).class));
}

fn description(all: &[Series]) -> String {
    let texts = all.iter().map(|series| {
        let points: Vec<&str> = series.points.iter().map(|point| point.text.as_str()).collect();
        format!("{}: {}.", series.mode, points.join(", "))
    });
    texts.collect::<Vec<_>>().join(" ")
}
