//! The charts of the report: each takes figures and gives one SVG element.
//!
//! Every chart is 360 units wide, a phone's width; the page puts as many side by side as fit.

mod axes;
pub mod curve;
pub mod fleet_timeline;
pub mod lines;
pub mod percentiles;
pub mod rows;
pub mod timeline;

/// Width of every chart, units.
pub const WIDTH: f64 = 360.0;
