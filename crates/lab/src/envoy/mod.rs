//! Envoy as the proxy of `mesh: envoy`: static configuration, no control plane.
//!
//! Read [`bootstrap`] for the file that a proxy is started with, [`admin`] for what it is asked while it runs, [`proof`]
//! for what its counters prove ([`hop`]: which of them), [`holdings`] for what it was configured with. How it is started in a pod is the
//! arrangement's business.

pub mod admin;
mod answer;
pub mod bootstrap;
mod cluster;
mod connection_manager;
pub mod holdings;
pub mod hop;
mod listener;
pub mod plain_text;
pub mod proof;
