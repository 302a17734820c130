//! A Kubernetes cluster as a place to run trials: `experiment`'s `Environment` with what every cluster has.
//! Jobs run the load and the scheduler spreads it: there is no operator and no custom resource of our own.
//!
//! Read [`objects`] first (what a deployment writes, pure), then [`plug`] (what a mesh adds to it),
//! [`environment`] (how it is brought up) and [`worker`] (what runs inside a Job). [`detached`] hands a run
//! over to a Job of its own, which executes [`runner`]. [`rights`] is the single list of permissions that a
//! user needs: `meshmeter cluster rbac` prints it and [`check`] queries the API for it. All objects that are
//! written carry the run's label, and [`clean`] removes nothing else.

// Docs only for what a name does not say: no fields here are part of a contract.
#![allow(missing_docs)]

pub mod check;
pub mod clean;
mod cluster;
pub mod connection;
mod deployment;
pub mod detached;
mod endpoint;
pub mod environment;
pub mod finding;
mod gateway;
pub mod in_pod;
mod lines;
mod lists;
pub mod manifests;
pub mod objects;
mod placement;
pub mod plug;
mod pods;
mod port_forward;
pub mod prometheus;
pub mod quota;
mod retry;
pub mod rights;
pub mod runner;
pub mod settings;
mod startup;
pub mod worker;

pub use deployment::{check_kubelet, check_prometheus, check_worker};

/// The result type of most functions here. The error names the operation.
pub(crate) type Result<T, E = experiment::environment::EnvironmentError> = std::result::Result<T, E>;
