//! What Envoy, Istio and Kubernetes are: objects to write, what to wait for, admin interfaces, path proof.
//! This crate knows neither processes nor network namespaces: the lab stands on it, and so will a cluster. A caller supplies
//! the connections (to an admin port, to the Kubernetes API) and gets values back.

// Docs are for what a name does not say: no fields here are a contract.
#![allow(missing_docs)]

pub mod admin;
pub mod certificates;
pub mod concurrent;
pub mod config_dump;
pub mod envoy;
pub mod exposition;
pub mod filters;
pub mod gateway_probe;
pub mod istio;
pub mod kubernetes;
pub mod linkerd;
pub mod names;
pub mod proof;
pub mod proxy;
pub mod service;
pub mod spans;
pub mod wait;
pub mod ztunnel;

/// What most functions return: their error names the operation.
pub(crate) type Result<T, E = experiment::environment::EnvironmentError> = std::result::Result<T, E>;
