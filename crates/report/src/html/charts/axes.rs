//! Axes for charts of a figure against a number.

use super::WIDTH;
use crate::format;
use crate::svg::scale::Scale;
use crate::svg::{Anchor, Drawing, text_width};

pub(super) const HEIGHT: f64 = 236.0;
pub(super) const LEFT: f64 = 46.0;
pub(super) const RIGHT: f64 = WIDTH - 14.0;
pub(super) const TOP: f64 = 26.0;
pub(super) const BOTTOM: f64 = HEIGHT - 40.0;

/// Horizontal range of the plot; leaves a gap to the vertical axis.
pub(super) const ACROSS: (f64, f64) = (LEFT + 6.0, RIGHT);

/// Vertical range of the plot.
pub(super) const UPWARDS: (f64, f64) = (BOTTOM, TOP);

/// Axes; several charts may share them so that they can be compared.
#[derive(Debug)]
pub struct Axes {
    /// The horizontal axis.
    pub(super) across: Scale,
    /// The vertical axis.
    pub(super) upwards: Scale,
    /// Label of the horizontal axis.
    pub(super) against: String,
    /// Unit of the vertical axis.
    pub(super) unit: String,
}

impl Axes {
    /// Position of a point.
    pub(super) fn place(&self, at: f64, figure: f64) -> (f64, f64) {
        (self.across.place(at), self.upwards.place(figure))
    }

    /// Draws the axes with their ticks and labels.
    pub(super) fn draw(&self, drawing: &mut Drawing) {
        for tick in self.upwards.ticks(6) {
            let y = self.upwards.place(tick);
            drawing.line((LEFT, y), (RIGHT, y), "grid");
            drawing.text((LEFT - 6.0, y + 3.5), Anchor::End, "tick", &format::tick(tick));
        }
        for tick in self.across.ticks(7) {
            let x = self.across.place(tick);
            drawing.line((x, BOTTOM), (x, BOTTOM + 4.0), "axis");
            let text = format::tick(tick);
            let within = x.min(WIDTH - text_width(&text) / 2.0 - 3.0);
            drawing.text((within, BOTTOM + 16.0), Anchor::Middle, "tick", &text);
        }
        drawing.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
        drawing.text((LEFT - 6.0, 12.0), Anchor::End, "tick unit", &self.unit);
        drawing.text(((LEFT + RIGHT) / 2.0, HEIGHT - 6.0), Anchor::Middle, "tick", &self.against);
    }
}
