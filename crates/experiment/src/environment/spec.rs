//! Specification of a deployment: mode, topology, settings of proxies and services.

use crate::dataplane::{Entry, ModeParts};
use crate::mesh_kind::MeshKind;
use crate::protocol::Protocol;
use crate::settings::components::ComponentsSettings;
use crate::settings::ingress::{Estate, GatewaySettings, Scenario};
use crate::settings::istio::{IngressTls, MeshSettings};
use crate::settings::proxy::ProxySettings;
use crate::settings::service::ServerSettings;
use crate::topology::settings::TopologySettings;
use crate::topology::{Topology, WorkloadId};
use results::Mode;
use std::sync::Arc;

/// Workloads, proxies and settings of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentSpec {
    /// Mesh type: what configures the proxies.
    pub mesh: MeshKind,
    /// Placement of the proxies on the path.
    pub mode: Mode,
    /// Workloads, calls and drivers.
    pub topology: Arc<Topology>,
    /// Settings of the proxies.
    pub proxy: ProxySettings,
    /// Versions and programs of its components.
    pub components: ComponentsSettings,
    /// Settings of Istio.
    pub istio: Arc<MeshSettings>,
    /// Domains behind the gateway.
    pub ingress: Arc<Estate>,
    /// Resources of the gateway.
    pub gateway: GatewaySettings,
}

impl DeploymentSpec {
    /// A deployment of a single pair, or of a fleet, with all defaults.
    #[must_use]
    pub fn new(mesh: MeshKind, mode: Mode) -> Self {
        let server = ServerSettings::default();
        let topology = TopologySettings::default().topology(mode, Protocol::default(), &server, None);
        Self {
            mesh,
            mode,
            topology: Arc::new(topology.expect("a pair is small")),
            proxy: ProxySettings::default(),
            components: ComponentsSettings::default(),
            istio: Arc::default(),
            ingress: Arc::default(),
            gateway: GatewaySettings::default(),
        }
    }

    /// Parts of the mode, without the gateway in the scenario of the direct path.
    #[must_use]
    pub fn parts(&self) -> ModeParts {
        if self.mode == Mode::ControlPlane && self.topology.workloads.iter().any(|workload| workload.in_mesh)
        {
            // The fleet's witnesses are sidecars.
            return self.mesh.parts(Mode::Sidecar);
        }
        self.mesh.parts_in(self.mode, self.ingress.scenario)
    }

    /// True if the data plane is attached to a workload. Drivers of an entry from outside the mesh are not
    /// members.
    ///
    /// # Panics
    /// If the topology has no workload with this ID.
    #[must_use]
    pub fn is_member(&self, id: WorkloadId) -> bool {
        let workload = &self.topology.workloads[id];
        let drives_from_outside = self.parts().entry != Entry::Direct && !workload.serves();
        workload.in_mesh && !drives_from_outside
    }

    /// TLS between clients and the gateway; the mutual TLS scenario overrides the setting.
    #[must_use]
    pub fn ingress_tls(&self) -> IngressTls {
        if self.ingress.scenario == Scenario::MutualTls { IngressTls::Mutual } else { self.istio.ingress.tls }
    }

    /// Sets the protocol of requests to every workload.
    #[must_use]
    pub fn with_protocol(mut self, protocol: Protocol) -> Self {
        let workloads = &mut Arc::make_mut(&mut self.topology).workloads;
        workloads.iter_mut().for_each(|workload| workload.protocol = protocol);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::DataPlane;

    #[test]
    fn drivers_before_a_gateway_are_outside_the_mesh() {
        let members = |mode| {
            let spec = DeploymentSpec::new(MeshKind::Istio, mode);
            [0, 1].map(|id| spec.is_member(id))
        };
        assert_eq!((members(Mode::Sidecar), members(Mode::Ingress)), ([true, true], [false, true]));
    }

    #[test]
    fn direct_scenario_removes_gateway_from_gateway_modes_only() {
        let parts = |mesh, mode, scenario| {
            let ingress = Arc::new(Estate { scenario, ..Estate::default() });
            DeploymentSpec { ingress, ..DeploymentSpec::new(mesh, mode) }.parts()
        };
        for (mesh, mode) in [(MeshKind::Istio, Mode::Ingress), (MeshKind::Envoy, Mode::Gateway)] {
            assert_eq!(parts(mesh, mode, Scenario::Direct), mesh.parts(Mode::None));
            assert_eq!(parts(mesh, mode, Scenario::NoFilters), mesh.parts(mode));
        }
        let sidecar = parts(MeshKind::Istio, Mode::Sidecar, Scenario::Direct);
        assert_eq!(sidecar.data_plane, DataPlane::Sidecar);
    }
}
