//! Settings of a node.

use experiment::topology::{Topology, WorkloadId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// The topology that the node is part of.
    pub topology: Topology,
    /// The workload that it runs.
    pub service: WorkloadId,
    /// Address of the service; port 0 selects a free one.
    pub listen: SocketAddr,
    /// Address of the admin endpoint: counters, metrics and health.
    pub admin_listen: SocketAddr,
    /// Addresses of callees and databases, `HOST:PORT`, that differ from the Kubernetes ones.
    pub connect: BTreeMap<WorkloadId, String>,
    /// PEM file of the authority that signed the databases' certificates.
    pub database_authority: Option<PathBuf>,
    /// Worker threads, each with its own event loop; the first is the caller of [`super::Node::run`].
    pub threads: usize,
    /// Seed of all random draws. `None`: a random seed.
    pub seed: Option<u64>,
}
