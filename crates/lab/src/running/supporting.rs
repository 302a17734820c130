//! Components that are neither on the path nor part of the application.

use crate::container::Container;
use crate::pod::Pod;
use mesh::admin::liveness::LivenessProbe;
use results::Role;

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

impl Supporting {
    /// A running component that shows its pod's traffic. `probe` is the port and the path of the request that
    /// it responds to.
    pub fn new(role: Role, pod: &Pod, container: Container, probe: Option<(u16, &'static str)>) -> Self {
        let liveness = probe.map(|(port, path)| LivenessProbe {
            process: None,
            admin: pod.admin(container.name(), port),
            path,
        });
        let (name, pod) = (container.name().to_owned(), pod.name().to_owned());
        Self { name, role, pod, container, liveness, is_running: true, shows_network: true }
    }
}
