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
    /// Protocol of every hop of the path.
    pub protocol: Protocol,
    /// Switches of the proxies.
    pub proxy: ProxySettings,
    /// Switches of Istio.
    pub istio: Arc<MeshSettings>,
    /// The synthetic service.
    pub server: ServerSettings,
    /// CPU limit of the generator, cores; absent: none.
    pub client_cpu_limit_cores: Option<f64>,
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
            protocol: Protocol::default(),
            proxy: ProxySettings::default(),
            istio: Arc::default(),
            server: ServerSettings::default(),
            client_cpu_limit_cores: None,
        }
    }
}
