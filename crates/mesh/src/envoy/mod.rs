//! Envoy: the static configuration of `mesh: envoy`, and what any Envoy says of itself.
//! Read [`hop`] first: where a proxy takes the load and where it sends it, and which counters follow from that.
//! [`bootstrap`] is the file that a proxy without a control plane is started with, [`footprint`] what it was configured with.

pub mod bootstrap;
mod cluster;
mod computing;
mod connection_manager;
pub mod credentials;
pub mod domains;
pub mod footprint;
pub mod hop;
pub mod istio_filters;
mod listener;
pub mod plaintext;
mod spec;
pub mod traffic;
pub mod update_times;
