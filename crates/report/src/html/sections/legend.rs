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
    pub(super) fn new(mode: Mode) -> Self {
        let style = ModeStyle::for_mode(mode);
        let mut drawing = Drawing::new(28.0, 12.0);
        drawing.line((0.0, 6.0), (28.0, 6.0), &format!("curve {}", style.class));
        drawing.marker(style.marker, (14.0, 6.0), 4.0, &format!("mark {}", style.class), "");
        Self { name: mode.name(), meaning: mode.meaning(), svg: drawing.finish_decoration("swatch") }
    }
}
