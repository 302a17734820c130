//! The Kubernetes API: its client, sets of objects, and the objects of workloads.
//! Read [`object_set`] first (the objects that a deployment writes and then removes exactly), then [`client`]
//! and `operations.rs`. Only this directory depends on the `kube` crate; objects are [`serde_json::Value`]s
//! everywhere else.

pub mod access;
pub mod admission;
pub mod client;
mod documents;
pub mod kubeconfig;
pub mod labelled;
pub mod manifests;
pub mod object_ref;
pub mod object_set;
mod operations;
pub mod port_forward;
pub mod queries;
mod request;
mod rest_mapper;
mod token;
pub mod workloads;
pub mod writes;
