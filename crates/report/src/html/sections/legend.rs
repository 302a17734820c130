//! The legend of modes.

use crate::html::style::ModeStyle;
use crate::svg::Drawing;
use results::Mode;
use serde::Serialize;

/// A mode in the legend.
#[derive(Debug, Serialize)]
pub(super) struct LegendEntry {
    name: &'static str,
    meaning: &'static str,
    svg: String,
}

impl LegendEntry {
    /// `is_graph`: several services call each other, so that a pair's client and server do not describe a mode.
    pub(super) fn new(mode: Mode, is_graph: bool) -> Self {
        let style = ModeStyle::for_mode(mode);
        let mut drawing = Drawing::new(28.0, 12.0);
        drawing.line((0.0, 6.0), (28.0, 6.0), &format!("curve {}", style.class));
        drawing.marker(style.marker, (14.0, 6.0), 4.0, &format!("mark {}", style.class), "");
        let meaning = meaning(mode, is_graph);
        Self { name: mode.name(), meaning, svg: drawing.finish_decoration("swatch") }
    }
}

fn meaning(mode: Mode, is_graph: bool) -> &'static str {
    match mode {
        Mode::None if is_graph => "services call each other directly: the floor",
        Mode::Sidecar if is_graph => "a proxy in the pod of every service",
        Mode::Ambient if is_graph => "node proxies (ztunnel) at both ends of every call",
        Mode::AmbientWaypoint if is_graph => {
            "node proxies at both ends of every call, with a waypoint between them"
        }
        _ => mode.meaning(),
    }
}
