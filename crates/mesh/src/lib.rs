//! Envoy, Istio, Linkerd and Kubernetes: objects to write, state to wait for, admin interfaces, path proof, the
//! course of a trial.
//! This crate knows neither processes nor network namespaces; environments such as the lab build on it. The
//! caller supplies the connections (to an admin port, to the Kubernetes API) and gets values back.

// Docs say only what a name does not: no field here is a contract.
#![allow(missing_docs)]

pub mod admin;
pub mod certificates;
pub mod concurrent;
pub mod config_dump;
pub mod dataplane;
pub mod envoy;
pub mod filters;
pub mod gateway_probe;
pub mod inbound;
pub mod invariants;
pub mod istio;
pub mod kubernetes;
pub mod lines;
pub mod linkerd;
pub mod names;
pub mod proof;
pub mod proxy;
pub mod service;
pub mod spans;
pub mod trial;
pub mod wait;
pub mod ztunnel;

/// Result of most functions; its error names the operation.
pub(crate) type Result<T, E = experiment::environment::EnvironmentError> = std::result::Result<T, E>;
