//! The Kubernetes API: its client, sets of objects, and the objects of workloads.
//!
//! Read [`object_set`] first (what a deployment writes, and that exactly this is removed again), then [`client`]. Only
//! [`client`] and what is private here knows the `kube` crate; objects are [`serde_json::Value`]s everywhere else.

pub mod admission;
pub mod client;
mod documents;
pub mod object_ref;
pub mod object_set;
mod request;
mod rest_mapper;
mod token;
pub mod workloads;
