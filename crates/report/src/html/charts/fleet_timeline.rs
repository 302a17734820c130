//! A fleet second by second: connected proxies, proxies with a complete configuration, and events.

use super::WIDTH;
use crate::format;
use crate::svg::scale::Scale;
use crate::svg::{Anchor, Drawing, Marker, text_width};
use results::{FleetEvent, FleetSecond};

const HEIGHT: f64 = 190.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = HEIGHT - 40.0;
/// Maximum number of points in a chart; longer series are thinned out.
const MAX_POINTS: usize = 300;

/// The chart of one trial.
pub fn chart(id: &str, title: &str, class: &str, series: &[FleetSecond], events: &[FleetEvent]) -> String {
    let step = series.len().div_ceil(MAX_POINTS).max(1);
    let seconds: Vec<&FleetSecond> = series.iter().step_by(step).collect();
    let end = |second: &&FleetSecond| second.t_s + 1.0;
    let across =
        Scale::linear(seconds.iter().map(end).chain(events.iter().map(|event| event.at)), (LEFT, RIGHT));
    let upwards = Scale::linear(seconds.iter().map(|second| second.connected as f64), (BOTTOM, TOP));
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    draw_axes(&mut drawing, &across, &upwards);
    for event in events {
        let x = across.place(event.at);
        drawing.line((x, TOP), (x, BOTTOM), "event");
        let tip = describe(event);
        drawing.marker(Marker::TriangleDown, (x, TOP - 4.0), 3.2, "mark grey", &tip);
    }
    let line = |read: fn(&FleetSecond) -> u64| -> Vec<(f64, f64)> {
        let start = std::iter::once((across.place(0.0), upwards.place(0.0)));
        let points = seconds.iter();
        start
            .chain(points.map(|second| (across.place(end(second)), upwards.place(read(second) as f64))))
            .collect()
    };
    drawing.polyline(&line(|second| second.connected), &format!("curve dashed {class}"));
    drawing.polyline(&line(|second| second.complete), &format!("curve {class}"));
    let places: Vec<f64> = seconds.iter().map(|second| across.place(end(second))).collect();
    for (index, second) in seconds.iter().enumerate() {
        let tip = format!(
            "{}: {} connected, {} complete, {} pushes, {}",
            format::duration(second.t_s + 1.0),
            format::count(second.connected),
            format::count(second.complete),
            format::count(second.pushes),
            format::size(second.bytes as f64)
        );
        drawing.strip(&places, index, (LEFT, RIGHT), (TOP, BOTTOM), &tip);
    }
    let texts: Vec<String> = events.iter().map(describe).collect();
    drawing.finish(id, title, &texts.join("; "))
}

/// Example: `12.4 s: istiod-killed, istiod`.
pub fn describe(event: &FleetEvent) -> String {
    let detail = if event.detail.is_empty() { String::new() } else { format!(", {}", event.detail) };
    format!("{}: {}{detail}", format::duration(event.at), event.kind)
}

fn draw_axes(drawing: &mut Drawing, across: &Scale, upwards: &Scale) {
    for tick in upwards.ticks(4) {
        let y = upwards.place(tick);
        drawing.line((LEFT, y), (RIGHT, y), "grid");
        drawing.text((LEFT - 6.0, y + 3.5), Anchor::End, "tick", &format::tick(tick));
    }
    for tick in across.ticks(6) {
        let x = across.place(tick);
        drawing.line((x, BOTTOM), (x, BOTTOM + 4.0), "axis");
        let text = format::tick(tick);
        let within = x.min(WIDTH - text_width(&text) / 2.0 - 3.0);
        drawing.text((within, BOTTOM + 16.0), Anchor::Middle, "tick", &text);
    }
    drawing.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    drawing.text((2.0, 11.0), Anchor::Start, "tick unit", "proxies");
    let name = "seconds from the first connection";
    drawing.text(((LEFT + RIGHT) / 2.0, HEIGHT - 6.0), Anchor::Middle, "tick", name);
}
