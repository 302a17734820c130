//! Settings of proxies, the synthetic service, gateways, Istio, fleets and mesh programs, with their
//! defaults.

pub mod components;
pub mod fleet;
pub mod ingress;
pub mod istio;
pub mod proxy;
pub mod service;
pub mod stream;
