//! A fleet of simulated proxies: clients of a control plane that subscribe as real ones do, over real connections, and time
//! the arrival of every change.
//!
//! Read [`xds`] first: one proxy as a state machine without I/O.

pub mod xds;
