//! Components that are neither on the path nor the application.

use crate::container::Container;
use experiment::schema::Role;
use mesh::admin::liveness::LivenessProbe;

/// A component that a deployment needs beside its workloads and proxies, such as a part of the control plane.
#[derive(Clone, Debug)]
pub(crate) struct Supporting {
    pub name: String,
    pub role: Role,
    pub pod: String,
    pub container: Container,
    /// What it responds to as long as it does anything; absent where it is probed in another way.
    pub liveness: Option<LivenessProbe>,
    /// It was not ended on purpose. One that was goes on counting what it has used.
    pub is_running: bool,
    pub shows_network: bool,
}
