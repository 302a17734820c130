//! Percentile curves: the latency distribution of each mode as one curve.
//!
//! Each further nine takes the same space on the horizontal axis. A curve stops where fewer than ten requests
//! lie beyond.

use crate::format::{self, TimeUnit};
use crate::html::curves::Curve;
use crate::html::style::ModeStyle;
use crate::svg::scale::Scale;
use crate::svg::{Anchor, Drawing};
use statistics::CurvePoint;

const HEIGHT: f64 = 256.0;
const LEFT: f64 = 46.0;
const RIGHT_MARGIN: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 40.0;

/// Quantity whose distribution is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Subject {
    /// Response times of requests.
    Requests,
    /// Times until the first tokens of streams.
    FirstTokens,
    /// Times until changes arrive at proxies.
    Convergence,
}

impl Subject {
    fn title(self) -> &'static str {
        match self {
            Self::Requests => "Response time by percentile at",
            Self::FirstTokens => "First token by percentile at",
            Self::Convergence => "Convergence by percentile with",
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Requests | Self::FirstTokens => "percentile of requests",
            Self::Convergence => "percentile of arrivals at proxies",
        }
    }
}

/// The axes that all charts of a page share, so that they can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Width of the charts, units.
    width: f64,
    /// Greatest percentile.
    greatest: f64,
    percentiles: Scale,
    times: Scale,
    unit: TimeUnit,
}

impl Axes {
    /// Axes that cover these curves, of charts of a width in units.
    pub fn new(curves: &[Curve], width: f64) -> Self {
        let points = || curves.iter().flat_map(|curve| curve.response.iter().chain(&curve.service));
        let unit = TimeUnit::for_times(points().map(|point| point.value_us));
        let greatest = points().map(|point| point.percentile).fold(50.0, f64::max);
        let times: Vec<f64> = points().map(|point| point.value_us / unit.us()).collect();
        Self {
            width,
            greatest,
            percentiles: Scale::tail(greatest, (LEFT, width - RIGHT_MARGIN)),
            times: Scale::fitting(&times, (BOTTOM, TOP)),
            unit,
        }
    }

    /// The same axes in charts of another width.
    pub fn in_width(self, width: f64) -> Self {
        Self { width, percentiles: Scale::tail(self.greatest, (LEFT, width - RIGHT_MARGIN)), ..self }
    }

    /// True if times are on a logarithmic axis.
    pub fn is_logarithmic(&self) -> bool {
        self.times.is_logarithmic()
    }

    fn right(&self) -> f64 {
        self.width - RIGHT_MARGIN
    }

    fn place(&self, point: &CurvePoint) -> (f64, f64) {
        (self.percentiles.place(point.percentile), self.times.place(point.value_us / self.unit.us()))
    }
}

/// The chart of one load.
pub fn chart(id: &str, load: &str, curves: &[&Curve], axes: &Axes, subject: Subject) -> String {
    let mut drawing = Drawing::new(axes.width, HEIGHT);
    draw_axes(&mut drawing, axes, subject);
    draw_tips(&mut drawing, curves, axes);
    for curve in curves {
        let style = ModeStyle::for_mode(curve.mode);
        if curve.service_differs() {
            let points: Vec<_> = curve.service.iter().map(|point| axes.place(point)).collect();
            drawing.polyline(&points, &format!("service {}", style.class));
        }
        let points: Vec<_> = curve.response.iter().map(|point| axes.place(point)).collect();
        drawing.polyline(&points, &format!("curve {}", style.class));
    }
    for curve in curves {
        let style = ModeStyle::for_mode(curve.mode);
        for point in &curve.marks {
            let tip = format!("{}: p{} {}", curve.mode, point.percentile, axes.unit.time(point.value_us));
            drawing.marker(style.marker, axes.place(point), 3.4, &format!("mark {}", style.class), &tip);
        }
    }
    drawing.finish(id, &format!("{} {load}", subject.title()), &description(curves, axes.unit))
}

/// Tooltips with every curve at a percentile, shown anywhere above or below it.
fn draw_tips(drawing: &mut Drawing, curves: &[&Curve], axes: &Axes) {
    let mut percentiles: Vec<f64> =
        curves.iter().flat_map(|curve| &curve.marks).map(|mark| mark.percentile).collect();
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    let places: Vec<f64> = percentiles.iter().map(|percentile| axes.percentiles.place(*percentile)).collect();
    for (index, percentile) in percentiles.iter().enumerate() {
        let here = |curve: &&Curve| {
            let mark = curve.marks.iter().find(|mark| mark.percentile == *percentile)?;
            Some(format!("{} {}", curve.mode, axes.unit.time(mark.value_us)))
        };
        let tip: Vec<String> = curves.iter().filter_map(here).collect();
        let tip = format!("p{percentile}: {}", tip.join(", "));
        drawing.strip(&places, index, (LEFT, axes.right()), (TOP, BOTTOM), &tip);
    }
}

fn draw_axes(drawing: &mut Drawing, axes: &Axes, subject: Subject) {
    for tick in axes.times.ticks(8) {
        let y = axes.times.place(tick);
        drawing.line((LEFT, y), (axes.right(), y), "grid");
        drawing.text((LEFT - 6.0, y + 3.5), Anchor::End, "tick", &format::tick(tick));
    }
    for tick in axes.percentiles.ticks(9) {
        let x = axes.percentiles.place(tick);
        drawing.line((x, BOTTOM), (x, BOTTOM + 4.0), "axis");
        drawing.text((x, BOTTOM + 16.0), Anchor::Middle, "tick", &tick.to_string());
    }
    drawing.line((LEFT, BOTTOM), (axes.right(), BOTTOM), "axis");
    drawing.text((LEFT - 6.0, 12.0), Anchor::End, "tick unit", axes.unit.symbol());
    drawing.text(((LEFT + axes.right()) / 2.0, HEIGHT - 6.0), Anchor::Middle, "tick", subject.axis());
}

fn description(curves: &[&Curve], unit: TimeUnit) -> String {
    let lines: Vec<String> = curves
        .iter()
        .map(|curve| {
            let marked: Vec<String> = curve
                .marks
                .iter()
                .map(|point| format!("p{} {}", point.percentile, unit.time(point.value_us)))
                .collect();
            format!("{}: {}.", curve.mode, marked.join(", "))
        })
        .collect();
    if lines.is_empty() { "No valid trial.".to_owned() } else { lines.join(" ") }
}
