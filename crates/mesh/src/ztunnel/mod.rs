//! ztunnel, the node proxy of ambient mode: its counters, which of them prove a path, its state, and its footprint.

pub mod evidence;
pub mod footprint;
pub mod metrics;
pub mod state;
