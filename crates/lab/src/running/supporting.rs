//! Components that are neither on the path nor part of the application.

use crate::container::Container;
use experiment::schema::Role;
use mesh::admin::liveness::LivenessProbe;

/// A component that a deployment needs next to its workloads and proxies, such as a part of the control
/// plane.
#[derive(Clone, Debug)]
pub(crate) struct Supporting {
    pub name: String,
    pub role: Role,
    pub pod: String,
    pub container: Container,
    /// A request that it responds to as long as it works; absent if it is probed by other means.
    pub liveness: Option<LivenessProbe>,
    /// False if it was ended on purpose. Its usage so far still counts.
    pub is_running: bool,
    pub shows_network: bool,
}
