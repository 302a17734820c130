//! Specification of a deployment: mode, topology, and the settings of its proxies and services.

use crate::mode::{MeshKind, Mode};
use crate::protocol::Protocol;
use crate::settings::istio::MeshSettings;
use crate::settings::proxy::ProxySettings;
use crate::settings::service::ServerSettings;
use crate::topology::{Topology, pair};
use std::sync::Arc;

/// Workloads, proxies and settings of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentSpec {
    /// Who configures the proxies.
    pub mesh: MeshKind,
    /// Where the proxies stand on the path.
    pub mode: Mode,
    /// Workloads, calls and drivers.
    pub topology: Arc<Topology>,
    /// Switches of the proxies.
    pub proxy: ProxySettings,
    /// Switches of Istio.
    pub istio: Arc<MeshSettings>,
}

impl DeploymentSpec {
    /// A deployment of a single pair with every default.
    #[must_use]
    pub fn new(mesh: MeshKind, mode: Mode) -> Self {
        Self {
            mesh,
            mode,
            topology: Arc::new(pair(
                1,
                1,
                Protocol::default(),
                &ServerSettings::default(),
                mode.is_egress(),
                None,
            )),
            proxy: ProxySettings::default(),
            istio: Arc::default(),
        }
    }

    /// The same with this protocol of requests to every workload.
    #[must_use]
    pub fn with_protocol(mut self, protocol: Protocol) -> Self {
        let workloads = &mut Arc::make_mut(&mut self.topology).workloads;
        workloads.iter_mut().for_each(|workload| workload.protocol = protocol);
        self
    }
}
