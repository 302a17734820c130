//! Parts of a mode: data plane of the workloads in the mesh, entry and exit.

/// Proxies that carry the traffic of workloads in the mesh.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DataPlane {
    /// No proxy.
    None,
    /// A static Envoy in each pod.
    StaticEnvoy,
    /// A sidecar in each pod, configured by istiod.
    Sidecar,
    /// ztunnel, the node proxy of ambient mode.
    Ztunnel,
    /// ztunnel, with a waypoint per namespace.
    ZtunnelWaypoint,
    /// Linkerd's proxy in each pod.
    Linkerd,
    /// Kernels of the nodes, by Cilium.
    Cilium,
}

/// How drivers reach their target workload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Entry {
    /// By its address or Service, like any workload.
    Direct,
    /// Through one static Envoy in its own pod.
    Gateway,
    /// From outside the mesh, through an ingress gateway.
    Ingress,
}

/// How calls reach external services.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// No external services.
    None,
    /// Directly, bypassing the caller's sidecar.
    Bypass,
    /// Through the caller's sidecar.
    Sidecar,
    /// Through an egress gateway.
    Gateway,
    /// Through an egress gateway, with mutual TLS between sidecar and gateway.
    GatewayMtls,
    /// Through an egress gateway, with an SNI proxy behind it.
    Sni,
}

/// Parts of a mode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ModeParts {
    /// Data plane of the workloads in the mesh.
    pub data_plane: DataPlane,
    /// Entry of the drivers.
    pub entry: Entry,
    /// Exit of calls to external services.
    pub exit: Exit,
}

/// Program of a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyProgram {
    /// Static Envoy.
    StaticEnvoy,
    /// Envoy under pilot-agent, configured by istiod.
    AgentEnvoy,
    /// ztunnel.
    Ztunnel,
    /// Linkerd's proxy.
    Linkerd,
}

impl ProxyProgram {
    fn is_envoy(self) -> bool {
        matches!(self, Self::StaticEnvoy | Self::AgentEnvoy)
    }
}

/// Proxies of a data plane, by location.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Proxies {
    /// Proxy in each pod.
    pub pod: Option<ProxyProgram>,
    /// Proxy on the node, for all pods.
    pub node: Option<ProxyProgram>,
    /// Proxy in each namespace that has a service in the mesh.
    pub namespace: Option<ProxyProgram>,
}

impl DataPlane {
    /// Proxies of this data plane, by location.
    #[must_use]
    pub fn proxies(self) -> Proxies {
        let none = Proxies { pod: None, node: None, namespace: None };
        match self {
            Self::None | Self::Cilium => none,
            Self::Linkerd => Proxies { pod: Some(ProxyProgram::Linkerd), ..none },
            Self::StaticEnvoy => Proxies { pod: Some(ProxyProgram::StaticEnvoy), ..none },
            Self::Sidecar => Proxies { pod: Some(ProxyProgram::AgentEnvoy), ..none },
            Self::Ztunnel => Proxies { node: Some(ProxyProgram::Ztunnel), ..none },
            Self::ZtunnelWaypoint => {
                Proxies { namespace: Some(ProxyProgram::AgentEnvoy), ..Self::Ztunnel.proxies() }
            }
        }
    }
}

impl ModeParts {
    /// True if an Envoy runs: a sidecar, a waypoint or a gateway.
    #[must_use]
    pub fn has_envoy(self) -> bool {
        let Proxies { pod, namespace, .. } = self.data_plane.proxies();
        pod.or(namespace).is_some_and(ProxyProgram::is_envoy) || self.entry != Entry::Direct
    }

    /// True if pods have sidecars.
    #[must_use]
    pub fn has_sidecars(self) -> bool {
        self.data_plane.proxies().pod.is_some()
    }

    /// True if a proxy of the mesh reads HTTP requests before the service. False for egress modes: the
    /// client's own TLS is passed through to the server.
    #[must_use]
    pub fn reads_requests(self) -> bool {
        self.exit == Exit::None && (self.has_envoy() || self.has_sidecars())
    }

    /// True if two adjacent proxies on the path both read requests.
    #[must_use]
    pub fn has_two_readers(self) -> bool {
        self.has_sidecars() && self.reads_requests()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh_kind::MeshKind;
    use results::Mode;

    #[test]
    fn modes_expand_to_their_parts() {
        let parts = MeshKind::Istio.parts(Mode::Ingress);
        assert_eq!(
            (parts.data_plane, parts.entry, parts.exit),
            (DataPlane::Sidecar, Entry::Ingress, Exit::None)
        );
        assert_eq!(MeshKind::Envoy.parts(Mode::Sidecar).data_plane, DataPlane::StaticEnvoy);
        let linkerd = MeshKind::Linkerd.parts(Mode::Sidecar);
        assert_eq!(linkerd.data_plane, DataPlane::Linkerd);
        assert!(linkerd.has_two_readers() && !linkerd.has_envoy());
        assert_eq!(MeshKind::Cilium.parts(Mode::None).data_plane, DataPlane::Cilium);
        for mode in Mode::ALL {
            let parts = MeshKind::Istio.parts(mode);
            assert_eq!(parts.exit != Exit::None, mode.is_egress(), "{mode}");
            assert_eq!(parts.data_plane.proxies().node.is_some(), mode.is_ambient(), "{mode}");
            let without_envoy = [Mode::None, Mode::Ambient, Mode::ControlPlane];
            assert_eq!(parts.has_envoy(), !without_envoy.contains(&mode), "{mode}");
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name(), "as users type it");
        }
    }
}
