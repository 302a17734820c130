//! The charts of the report: each turns figures into one SVG element.
//!
//! Every chart is 360 units wide, the width of a phone; the page places as many side by side as fit.

mod axes;
pub mod curve;
pub mod fleet_timeline;
pub mod lines;
pub mod percentiles;
pub mod rows;
pub mod timeline;

/// Width of every chart in units.
pub const WIDTH: f64 = 360.0;
