//! What a node is asked for.

use experiment::topology::{Topology, WorkloadId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// The graph that the node is part of.
    pub topology: Topology,
    /// The workload that it runs.
    pub service: WorkloadId,
    /// Where it takes requests; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Where it shows counts, metrics and health.
    pub admin_listen: SocketAddr,
    /// Where callees and databases are, `HOST:PORT`, if not where Kubernetes has them.
    pub connect: BTreeMap<WorkloadId, String>,
    /// Certificates that databases are verified with, PEM.
    pub database_authority: Option<PathBuf>,
    /// Worker threads, each with an event loop of its own; the first is the caller of [`super::Node::run`].
    pub threads: usize,
    /// Seed of everything that is drawn. Absent: another one each time.
    pub seed: Option<u64>,
}
