//! The parts of a mode: the data plane of the workloads in the mesh, the way into it and the way out of it.

/// Arrangement of proxies that carries the traffic of the workloads in the mesh.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DataPlane {
    /// No proxy.
    None,
    /// An Envoy with a static file in each pod.
    StaticEnvoy,
    /// A sidecar in each pod, configured by istiod.
    Sidecar,
    /// ztunnel, the node proxy of ambient mode.
    Ztunnel,
    /// ztunnel, with a waypoint per namespace.
    ZtunnelWaypoint,
}

/// How drivers reach the workload that they offer load to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Entry {
    /// By its address or its Service, as a workload would.
    Direct,
    /// Through one Envoy with a static file, in a pod of its own.
    Gateway,
    /// From outside the mesh through an ingress gateway.
    Ingress,
}

/// How calls reach external services.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exit {
    /// There are none.
    None,
    /// Past the caller's sidecar.
    Bypass,
    /// Through the caller's sidecar.
    Sidecar,
    /// Through an egress gateway.
    Gateway,
    /// The same with mutual TLS between sidecar and gateway.
    GatewayMtls,
    /// The same with an SNI proxy behind the gateway.
    Sni,
}

/// A mode in its parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ModeParts {
    /// Of the workloads in the mesh.
    pub data_plane: DataPlane,
    /// Of the drivers.
    pub entry: Entry,
    /// Of calls to external services.
    pub exit: Exit,
}

/// Program of a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyProgram {
    /// Envoy with a static file.
    StaticEnvoy,
    /// Envoy under pilot-agent, configured by istiod.
    AgentEnvoy,
    /// ztunnel.
    Ztunnel,
}

/// Proxies of a data plane, by place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Proxies {
    /// In each pod.
    pub pod: Option<ProxyProgram>,
    /// On the node, for all pods.
    pub node: Option<ProxyProgram>,
    /// In each namespace that has a service in the mesh.
    pub namespace: Option<ProxyProgram>,
}

impl DataPlane {
    /// Proxies that run for it, by place.
    #[must_use]
    pub fn proxies(self) -> Proxies {
        let none = Proxies { pod: None, node: None, namespace: None };
        match self {
            Self::None => none,
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
        pod.is_some() || namespace.is_some() || self.entry != Entry::Direct
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::{MeshKind, Mode};

    #[test]
    fn modes_expand_to_their_parts() {
        let parts = Mode::Ingress.parts(MeshKind::Istio);
        assert_eq!(
            (parts.data_plane, parts.entry, parts.exit),
            (DataPlane::Sidecar, Entry::Ingress, Exit::None)
        );
        assert_eq!(Mode::Sidecar.parts(MeshKind::Envoy).data_plane, DataPlane::StaticEnvoy);
        for mode in Mode::ALL {
            let parts = mode.parts(MeshKind::Istio);
            assert_eq!(parts.exit != Exit::None, mode.is_egress(), "{mode}");
            let without_envoy = [Mode::None, Mode::Ambient, Mode::ControlPlane];
            assert_eq!(parts.has_envoy(), !without_envoy.contains(&mode), "{mode}");
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name(), "as users type it");
        }
    }
}
