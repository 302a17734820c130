//! The parts of a mode: the data plane of the workloads in the mesh, the way into it and the way out of it.

use crate::mode::{MeshKind, Mode};

/// Proxies that carry the traffic of the workloads in the mesh.
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

impl ModeParts {
    /// Whether an Envoy runs: a sidecar, a waypoint or a gateway.
    #[must_use]
    pub fn has_envoy(self) -> bool {
        !matches!(self.data_plane, DataPlane::None | DataPlane::Ztunnel) || self.entry != Entry::Direct
    }
}

impl Mode {
    /// Whether istiod configures Envoys in this mode; those of a fleet are simulated.
    #[must_use]
    pub fn configures_envoys(self) -> bool {
        self == Self::ControlPlane || self.parts(MeshKind::Istio).has_envoy()
    }

    /// The parts that this mode consists of under `mesh`.
    #[must_use]
    pub fn parts(self, mesh: MeshKind) -> ModeParts {
        let sidecar = match mesh {
            MeshKind::Envoy => DataPlane::StaticEnvoy,
            MeshKind::Istio => DataPlane::Sidecar,
        };
        let direct = |data_plane| ModeParts { data_plane, entry: Entry::Direct, exit: Exit::None };
        let exit = |exit| ModeParts { exit, ..direct(sidecar) };
        match self {
            Self::None | Self::ControlPlane => direct(DataPlane::None),
            Self::Gateway => ModeParts { entry: Entry::Gateway, ..direct(DataPlane::None) },
            Self::Sidecar => direct(sidecar),
            Self::Ambient => direct(DataPlane::Ztunnel),
            Self::AmbientWaypoint => direct(DataPlane::ZtunnelWaypoint),
            Self::Ingress => ModeParts { entry: Entry::Ingress, ..direct(sidecar) },
            Self::EgressBypass => exit(Exit::Bypass),
            Self::EgressSidecar => exit(Exit::Sidecar),
            Self::EgressGateway => exit(Exit::Gateway),
            Self::EgressGatewayMtls => exit(Exit::GatewayMtls),
            Self::EgressSni => exit(Exit::Sni),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
    }
}
