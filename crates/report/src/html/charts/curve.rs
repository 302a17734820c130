//! A chart of measured points with a fitted curve: solid within the measured range, dashed where it is
//! extrapolated.

use super::WIDTH;
use super::axes::{ACROSS, Axes, HEIGHT, UPWARDS};
use crate::html::style::ModeStyle;
use crate::svg::Drawing;
use crate::svg::scale::Scale;

/// Points and a curve, in the units of the axes.
#[derive(Debug)]
pub struct CurveChart {
    /// Measured values, ascending.
    pub points: Vec<MeasuredPoint>,
    /// The curve within the measured range.
    pub curve: Vec<(f64, f64)>,
    /// The curve outside of it.
    pub beyond: Beyond,
    /// Label of the horizontal axis.
    pub against: String,
    /// Unit of the vertical axis.
    pub unit: &'static str,
    /// Colour and marker of the mode.
    pub style: ModeStyle,
}

/// The curve outside the measured range.
#[derive(Debug)]
pub struct Beyond {
    /// Below the smallest measured value.
    pub before: Vec<(f64, f64)>,
    /// Above the largest measured value.
    pub after: Vec<(f64, f64)>,
}

/// One measured value.
#[derive(Debug)]
pub struct MeasuredPoint {
    /// Position on the horizontal axis.
    pub at: f64,
    /// Position on the vertical axis.
    pub value: f64,
    /// Confidence interval of the value.
    pub interval: Option<(f64, f64)>,
    /// Text of the tooltip.
    pub text: String,
}

impl CurveChart {
    /// The chart as SVG.
    pub fn draw(&self, id: &str, title: &str) -> String {
        let mut drawing = Drawing::new(WIDTH, HEIGHT);
        let ends = self
            .points
            .iter()
            .flat_map(|point| point.interval.map_or([point.value; 2], |(low, high)| [low, high]));
        let curves = || self.curve.iter().chain(&self.beyond.before).chain(&self.beyond.after);
        let axes = Axes {
            across: Scale::linear(curves().map(|(at, _)| *at), ACROSS),
            upwards: Scale::linear(curves().map(|(_, value)| *value).chain(ends), UPWARDS),
            against: self.against.clone(),
            unit: self.unit.to_owned(),
        };
        axes.draw(&mut drawing);
        let class = self.style.class;
        let placed = |curve: &[(f64, f64)]| -> Vec<(f64, f64)> {
            curve.iter().map(|(at, value)| axes.place(*at, *value)).collect()
        };
        drawing.polyline(&placed(&self.beyond.before), &format!("curve dashed {class}"));
        drawing.polyline(&placed(&self.beyond.after), &format!("curve dashed {class}"));
        drawing.polyline(&placed(&self.curve), &format!("curve {class}"));
        for point in &self.points {
            let place = |value: f64| axes.place(point.at, value);
            if let Some((low, high)) = point.interval {
                drawing.line(place(low), place(high), &format!("whisker {class}"));
            }
            drawing.marker(self.style.marker, place(point.value), 3.6, &format!("mark {class}"), &point.text);
        }
        let texts: Vec<&str> = self.points.iter().map(|point| point.text.as_str()).collect();
        drawing.finish(id, title, &texts.join(". "))
    }
}
