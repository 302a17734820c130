//! A Kubernetes cluster as the place where trials run: `experiment`'s `Environment` on what a cluster already has. Jobs run
//! the load and the scheduler spreads it: there is no operator and no definition of our own.
//!
//! Read [`objects`] first (what a deployment writes, pure), then [`plug`] (what a mesh adds to it), [`environment`] (how it is
//! brought up) and [`worker`] (what runs inside a Job). [`detached`] leaves a run to a Job of its own, which [`runner`] is. [`rights`] is the one list of what a user must be allowed to do, which
//! `meshmeter cluster rbac` prints and [`check`] asks the API for. Everything that is written carries the run's label, and
//! [`clean`] removes nothing else.

// Docs are for what a name does not say: no fields here are a contract.
#![allow(missing_docs)]

pub mod check;
pub mod clean;
pub mod connection;
mod deployment;
pub mod detached;
mod endpoint;
pub mod environment;
mod gateway;
pub mod in_pod;
pub mod objects;
mod patience;
mod placement;
pub mod plug;
mod pods;
pub mod prometheus;
pub mod quota;
pub mod rights;
pub mod runner;
pub mod settings;
mod startup;
pub mod worker;

/// What most functions return: their error names the operation.
pub(crate) type Result<T, E = experiment::environment::EnvironmentError> = std::result::Result<T, E>;
