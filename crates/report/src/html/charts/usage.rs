//! CPU and memory of a component over the window of a trial.

use super::WIDTH;
use crate::format::{self, SizeUnit};
use crate::svg::scale::Scale;
use crate::svg::{Anchor, Drawing};
use crate::watched::UsagePoint;

const HEIGHT: f64 = 130.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 46.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = HEIGHT - 24.0;

/// The chart of one component: CPU solid, by the axis at the left; memory dashed, by the one at the right.
pub fn chart(id: &str, title: &str, points: &[UsagePoint]) -> String {
    let bytes = points.iter().filter_map(|point| point.memory_bytes).map(|bytes| bytes as f64);
    let unit = SizeUnit::for_sizes(bytes.clone());
    let end_s = points.last().map_or(1.0, |last| last.t_s).max(1.0);
    let across = |point: &UsagePoint| LEFT + point.t_s / end_s * (RIGHT - LEFT);
    let cores = Scale::linear(points.iter().map(|point| point.cpu_cores), (BOTTOM, TOP));
    let sizes = Scale::linear(bytes.map(|bytes| bytes / unit.bytes()), (BOTTOM, TOP));
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    for tick in cores.ticks(3) {
        let y = cores.place(tick);
        drawing.line((LEFT, y), (RIGHT, y), "grid");
        drawing.text((LEFT - 6.0, y + 3.5), Anchor::End, "tick", &format::tick(tick));
    }
    for tick in sizes.ticks(3) {
        drawing.text((RIGHT + 6.0, sizes.place(tick) + 3.5), Anchor::Start, "tick", &format::tick(tick));
    }
    drawing.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    drawing.text((LEFT - 6.0, 11.0), Anchor::End, "tick unit", "cores");
    drawing.text((RIGHT + 6.0, 11.0), Anchor::Start, "tick unit", unit.symbol());
    let place = |point: &UsagePoint, y: f64| (across(point), y);
    let cpu: Vec<_> = points.iter().map(|point| place(point, cores.place(point.cpu_cores))).collect();
    let memory = |point: &UsagePoint| Some(sizes.place(point.memory_bytes? as f64 / unit.bytes()));
    let memory: Vec<_> = points.iter().filter_map(|point| Some(place(point, memory(point)?))).collect();
    drawing.polyline(&cpu, "curve blue");
    drawing.polyline(&memory, "curve dashed blue");
    let places: Vec<f64> = points.iter().map(across).collect();
    for (index, point) in points.iter().enumerate() {
        let tip = format!("{}: {}", format::duration(point.t_s.round()), text(point).join(", "));
        drawing.strip(&places, index, (LEFT, RIGHT), (TOP, BOTTOM), &tip);
    }
    for (x, anchor, t_s) in [(LEFT, Anchor::Start, 0.0), (RIGHT, Anchor::End, end_s.round())] {
        drawing.text((x, HEIGHT - 8.0), anchor, "tick", &format::duration(t_s));
    }
    let last = points.last().map(|last| format!("At last {}.", text(last).join(", ")));
    drawing.finish(id, title, &last.unwrap_or_default())
}

/// CPU and memory of a point.
pub fn text(point: &UsagePoint) -> [String; 2] {
    let memory =
        point.memory_bytes.map_or_else(|| format::ABSENT.to_owned(), |bytes| format::size(bytes as f64));
    [format::cores(point.cpu_cores), memory]
}
