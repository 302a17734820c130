//! A chart of measured points with a fitted curve: solid where it was measured, dashed where it is extrapolated.

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
    /// Within the measured range.
    pub curve: Vec<(f64, f64)>,
    /// Outside of it.
    pub beyond: Beyond,
    /// What the horizontal axis is.
    pub against: String,
    /// Unit of the vertical axis.
    pub unit: &'static str,
    /// Colour and marker.
    pub style: ModeStyle,
}

/// The curve outside the measured range.
#[derive(Debug)]
pub struct Beyond {
    /// Below the least measured value.
    pub before: Vec<(f64, f64)>,
    /// Above the greatest.
    pub after: Vec<(f64, f64)>,
}

/// One measured value.
#[derive(Debug)]
pub struct MeasuredPoint {
    /// On the horizontal axis.
    pub at: f64,
    /// On the vertical axis.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// In words.
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
