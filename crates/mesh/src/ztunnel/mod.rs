//! ztunnel, the node proxy of ambient mode: its counters, which of them prove a path, what it was told, and what it holds.

pub mod evidence;
pub mod footprint;
pub mod messages;
pub mod metrics;
pub mod state;
