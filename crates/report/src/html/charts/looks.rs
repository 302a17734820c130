//! Looks of a comparison at one figure: its change with the interval of each look, and the margin of equivalence.

use super::WIDTH;
use super::axes::{ACROSS, Axes, BOTTOM, HEIGHT, LEFT, RIGHT, TOP, UPWARDS};
use crate::svg::scale::Scale;
use crate::svg::{Drawing, Marker};

/// Changes beyond this many times the last interval, the margin and the estimates are cut off: early looks know little.
const SHOWN: f64 = 1.5;

/// One look.
#[derive(Clone, Debug)]
pub struct Look {
    /// Number of the look, from 1.
    pub number: usize,
    /// Change in percent.
    pub change: f64,
    /// Interval of the change.
    pub interval: Option<(f64, f64)>,
    /// Change and verdict as text.
    pub text: String,
    /// Marker of the verdict.
    pub marker: Marker,
    /// CSS class of the verdict.
    pub class: &'static str,
}

/// The chart as SVG. `margin`: in percent.
pub fn chart(id: &str, title: &str, looks: &[Look], margin: f64) -> String {
    let limit = SHOWN * reach(looks, margin);
    let within = |change: f64| change.clamp(-limit, limit);
    let numbers = looks.iter().map(|look| look.number as f64);
    let ends = looks.iter().filter_map(|look| look.interval).flat_map(|(low, high)| [low, high]);
    let changes = looks.iter().map(|look| look.change).chain(ends).map(within);
    let axes = Axes {
        across: Scale::linear(numbers, ACROSS),
        upwards: Scale::linear(changes.chain([-margin, margin]), UPWARDS),
        against: "look, one after each repeat".to_owned(),
        unit: "%".to_owned(),
    };
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    axes.draw(&mut drawing);
    let (top, bottom) = (axes.upwards.place(margin), axes.upwards.place(-margin));
    drawing.rectangle((LEFT, top), RIGHT - LEFT, bottom - top, "band grey");
    drawing.line((LEFT, axes.upwards.place(0.0)), (RIGHT, axes.upwards.place(0.0)), "axis");
    let places: Vec<f64> = looks.iter().map(|look| axes.across.place(look.number as f64)).collect();
    for (index, look) in looks.iter().enumerate() {
        let at = |change: f64| axes.place(look.number as f64, within(change));
        if let Some((low, high)) = look.interval {
            drawing.line(at(low), at(high), &format!("whisker {}", look.class));
        }
        drawing.strip(&places, index, (LEFT, RIGHT), (TOP, BOTTOM), &look.text);
        drawing.marker(look.marker, at(look.change), 3.2, &format!("mark {}", look.class), &look.text);
    }
    let texts: Vec<&str> = looks.iter().map(|look| look.text.as_str()).collect();
    drawing.finish(id, title, &format!("{}.", texts.join("; ")))
}

/// Largest of the margin, the changes and the ends of the last interval.
fn reach(looks: &[Look], margin: f64) -> f64 {
    let last = looks.last().and_then(|look| look.interval).into_iter().flat_map(|(low, high)| [low, high]);
    looks.iter().map(|look| look.change).chain(last).map(f64::abs).fold(margin, f64::max)
}
