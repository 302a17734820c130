//! ztunnel, the node proxy of ambient mode: its counters, which of them prove a path, its state, what it accepts, and its
//! footprint.

pub mod admin;
pub mod evidence;
pub mod footprint;
pub mod metrics;
pub mod plaintext;
pub mod state;
