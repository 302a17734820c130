//! Switches of the proxies, the synthetic service and Istio, with their defaults.

pub mod istio;
pub mod proxy;
pub mod service;
