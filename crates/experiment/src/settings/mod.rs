//! Switches of the proxies, the synthetic service, gateways, Istio and fleets, and programs of the mesh, with their defaults.

pub mod components;
pub mod fleet;
pub mod ingress;
pub mod istio;
pub mod proxy;
pub mod service;
