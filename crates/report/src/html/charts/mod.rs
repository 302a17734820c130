//! The charts of the report: each turns figures into one SVG element.
//!
//! Charts are 360 units wide, the width of a phone; the page places as many side by side as fit. One that has a row of a wide
//! page for itself is drawn a second time in the width there is ([`WIDE`]), and the page shows the one that fits.

mod axes;
pub mod course;
pub mod curve;
pub mod flames;
pub mod fleet_timeline;
pub mod heat;
pub mod lines;
pub mod looks;
pub mod percentiles;
pub mod rows;
pub mod timeline;
pub mod usage;

/// Width of a chart in units.
pub const WIDTH: f64 = 360.0;

/// Width of a chart that has a row of a wide page for itself, in units.
pub const WIDE: f64 = 760.0;
