//! Envoy as the proxy of `mesh: envoy`: static configuration, no control plane.
//!
//! Read [`bootstrap`] for the file that a proxy is started with, [`admin`] for what it is asked while it runs, [`proof`]
//! for what its counters prove. How it is started in a pod is the arrangement's business.

pub mod admin;
pub mod bootstrap;
mod cluster;
mod connection_manager;
mod listener;
pub mod proof;
