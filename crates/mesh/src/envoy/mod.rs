//! Envoy: the static configuration of `mesh: envoy`, and the state that any Envoy reports.
//! Read [`hop`] first: where a proxy receives and forwards the load, and the counters that follow from it.
//! [`bootstrap`] is the file that starts a proxy without a control plane; [`footprint`] is the configuration
//! it holds.

pub mod bootstrap;
mod cluster;
mod computing;
mod connection_manager;
pub mod credentials;
pub mod domains;
pub(crate) mod extension;
pub mod footprint;
pub mod hop;
pub mod istio_filters;
mod listener;
pub mod plaintext;
mod spec;
mod tls;
pub mod traffic;
