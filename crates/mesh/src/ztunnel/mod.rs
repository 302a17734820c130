//! ztunnel, the node proxy of ambient mode: its counters, what it was told, and what it holds.

pub mod footprint;
pub mod messages;
pub mod metrics;
pub mod state;
