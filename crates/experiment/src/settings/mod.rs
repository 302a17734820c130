//! Switches of the proxies, the synthetic service, gateways, Istio and fleets, with their defaults.

pub mod fleet;
pub mod ingress;
pub mod istio;
pub mod proxy;
pub mod service;
