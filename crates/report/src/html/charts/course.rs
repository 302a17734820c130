//! Course of one figure over the runs of a history: each run, the level of each segment, and the changes between them.

use super::WIDTH;
use super::axes::{ACROSS, Axes, BOTTOM, HEIGHT, LEFT, RIGHT, TOP, UPWARDS};
use crate::svg::scale::Scale;
use crate::svg::{Anchor, Drawing, Marker, fitted, text_width};

/// Width of the name of a run at a change.
const MAX_LABEL: f64 = 110.0;

/// One run, or the mean of several.
#[derive(Clone, Debug)]
pub struct Point {
    /// Number of the run, from 1; a mean of runs is between them.
    pub run: f64,
    /// Difference from the level of the first segment, percent.
    pub change: f64,
    /// Runs and value as text.
    pub text: String,
}

/// Runs without a change between them. Differences as in [`Point::change`].
#[derive(Clone, Debug)]
pub struct Level {
    /// Numbers of the first and the last run.
    pub runs: (f64, f64),
    /// Mean.
    pub change: f64,
    /// One standard deviation below and above the mean.
    pub spread: Option<(f64, f64)>,
}

/// A change, before its run.
#[derive(Clone, Debug)]
pub struct Change {
    /// Number of the first run after it.
    pub run: f64,
    /// The run's name.
    pub label: String,
    /// Run, change and programs as text.
    pub text: String,
    /// Marker and CSS class: worse or better.
    pub style: (Marker, &'static str),
}

/// The chart as SVG.
pub fn chart(id: &str, title: &str, points: &[Point], levels: &[Level], changes: &[Change]) -> String {
    let spreads = levels.iter().filter_map(|level| level.spread).flat_map(|(low, high)| [low, high]);
    let axes = Axes {
        across: Scale::linear(levels.iter().map(|level| level.runs.1), ACROSS),
        upwards: Scale::linear(points.iter().map(|point| point.change).chain(spreads), UPWARDS),
        against: "run, in the order of the history".to_owned(),
        unit: "%".to_owned(),
    };
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    axes.draw(&mut drawing);
    for level in levels {
        // Half a run wider, so that a level of one run shows.
        let (left, right) = (axes.across.place(level.runs.0 - 0.5), axes.across.place(level.runs.1 + 0.5));
        let (left, right) = (left.max(LEFT), right.min(RIGHT));
        if let Some((low, high)) = level.spread {
            let (top, bottom) = (axes.upwards.place(high), axes.upwards.place(low));
            drawing.rectangle((left, top), right - left, bottom - top, "band grey");
        }
        let y = axes.upwards.place(level.change);
        drawing.line((left, y), (right, y), "whisker blue");
    }
    for Change { run, style: (_, class), .. } in changes {
        let x = axes.across.place(run - 0.5);
        drawing.line((x, TOP), (x, BOTTOM), &format!("whisker {class}"));
    }
    let places: Vec<f64> = points.iter().map(|point| axes.across.place(point.run)).collect();
    for (index, point) in points.iter().enumerate() {
        drawing.strip(&places, index, (LEFT, RIGHT), (TOP, BOTTOM), &point.text);
        drawing.marker(Marker::Circle, axes.place(point.run, point.change), 2.2, "mark grey", &point.text);
    }
    let mut free_from = LEFT;
    for Change { run, label, text, style: (marker, class) } in changes {
        let x = axes.across.place(run - 0.5);
        drawing.marker(*marker, (x, TOP), 4.0, &format!("mark {class}"), text);
        // Names that would meet are in the tooltips alone.
        let label = fitted(label, MAX_LABEL);
        let left = (x - text_width(&label) / 2.0).min(RIGHT - text_width(&label));
        if left > free_from {
            drawing.text((left, TOP - 8.0), Anchor::Start, "tick", &label);
            free_from = left + text_width(&label) + 6.0;
        }
    }
    let texts: Vec<&str> = changes.iter().map(|change| change.text.as_str()).collect();
    let description =
        if texts.is_empty() { "No change.".to_owned() } else { format!("{}.", texts.join("; ")) };
    drawing.finish(id, title, &description)
}
