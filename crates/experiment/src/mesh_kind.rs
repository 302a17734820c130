//! Meshes: what configures the proxies, and which modes it supports.

use crate::dataplane::{DataPlane, Entry, Exit, ModeParts};
use crate::keys::words::words;
use crate::settings::ingress::Scenario;
use results::Mode;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Mesh type: what configures the proxies.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshKind {
    /// Envoy with static files, no control plane.
    Envoy,
    /// istiod configures everything.
    Istio,
    /// Linkerd's own proxies; on clusters only.
    Linkerd,
    /// Network of a cluster, which carries the traffic in the kernels of its nodes.
    Cilium,
}

words!(MeshKind { Envoy = "envoy", Istio = "istio", Linkerd = "linkerd", Cilium = "cilium" });

/// Meshes that support a mode, and its parts.
struct Row {
    meshes: &'static [MeshKind],
    /// Parts under istiod.
    parts: ModeParts,
}

/// Table of modes: meshes that support the mode, and its parts (data plane, entry, exit).
fn row(mode: Mode) -> Row {
    const ISTIO: &[MeshKind] = &[MeshKind::Istio];
    const ENVOY: &[MeshKind] = &[MeshKind::Envoy];
    const WITH_SIDECARS: &[MeshKind] = &[MeshKind::Envoy, MeshKind::Istio, MeshKind::Linkerd];
    let row = |meshes, data_plane, entry, exit| Row { meshes, parts: ModeParts { data_plane, entry, exit } };
    match mode {
        Mode::None => row(&MeshKind::ALL, DataPlane::None, Entry::Direct, Exit::None),
        Mode::Gateway => row(ENVOY, DataPlane::None, Entry::Gateway, Exit::None),
        Mode::Sidecar => row(WITH_SIDECARS, DataPlane::Sidecar, Entry::Direct, Exit::None),
        Mode::Ambient => row(ISTIO, DataPlane::Ztunnel, Entry::Direct, Exit::None),
        Mode::AmbientWaypoint => row(ISTIO, DataPlane::ZtunnelWaypoint, Entry::Direct, Exit::None),
        Mode::Ingress => row(ISTIO, DataPlane::Sidecar, Entry::Ingress, Exit::None),
        Mode::EgressBypass => row(ISTIO, DataPlane::Sidecar, Entry::Direct, Exit::Bypass),
        Mode::EgressSidecar => row(ISTIO, DataPlane::Sidecar, Entry::Direct, Exit::Sidecar),
        Mode::EgressGateway => row(ISTIO, DataPlane::Sidecar, Entry::Direct, Exit::Gateway),
        Mode::EgressGatewayMtls => row(ISTIO, DataPlane::Sidecar, Entry::Direct, Exit::GatewayMtls),
        Mode::EgressSni => row(ISTIO, DataPlane::Sidecar, Entry::Direct, Exit::Sni),
        Mode::ControlPlane => row(ISTIO, DataPlane::None, Entry::Direct, Exit::None),
    }
}

impl MeshKind {
    /// Meshes that a lab runs; the others run on clusters.
    pub const IN_LAB: [Self; 2] = [Self::Envoy, Self::Istio];

    /// Meshes that clusters have.
    pub const ON_CLUSTERS: [Self; 3] = [Self::Istio, Self::Linkerd, Self::Cilium];

    /// True if this mesh supports `mode`.
    #[must_use]
    pub fn makes(self, mode: Mode) -> bool {
        row(mode).meshes.contains(&self)
    }

    /// Supported modes, in the order in which reports show them.
    pub fn modes(self) -> impl Iterator<Item = Mode> {
        Mode::ALL.into_iter().filter(move |mode| self.makes(*mode))
    }

    /// Parts of a mode under this mesh.
    #[must_use]
    pub fn parts(self, mode: Mode) -> ModeParts {
        let parts = row(mode).parts;
        let data_plane = match (self, parts.data_plane) {
            (Self::Envoy, DataPlane::Sidecar) => DataPlane::StaticEnvoy,
            (Self::Linkerd, DataPlane::Sidecar) => DataPlane::Linkerd,
            (Self::Cilium, DataPlane::None) => DataPlane::Cilium,
            (_, data_plane) => data_plane,
        };
        ModeParts { data_plane, ..parts }
    }

    /// Parts of a mode in a scenario of its gateway: the direct path has no gateway and no mesh behind it.
    #[must_use]
    pub fn parts_in(self, mode: Mode, scenario: Scenario) -> ModeParts {
        let parts = self.parts(mode);
        let is_direct = scenario == Scenario::Direct && parts.entry != Entry::Direct;
        if is_direct { self.parts(Mode::None) } else { parts }
    }
}

impl fmt::Display for MeshKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
