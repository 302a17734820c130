//! The Kubernetes API: its client, sets of objects, and the objects of workloads.
//! Read [`object_set`] first (the objects that a deployment writes and then removes exactly), then [`client`]
//! and `operations.rs`. Objects are [`serde_json::Value`]s everywhere, except where crate `cluster` builds typed
//! ones. [`request`] and [`lists`] are for requests that only one crate needs.

pub mod access;
pub mod admission;
pub mod client;
mod documents;
pub mod kubeconfig;
pub mod lists;
pub mod object_ref;
pub mod object_set;
mod operations;
pub mod request;
mod rest_mapper;
mod token;
pub mod workloads;
