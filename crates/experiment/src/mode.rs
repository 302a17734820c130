//! Modes: deployments of proxies on a request's path, by the name that users type.

use crate::dataplane::{DataPlane, Entry, Exit, ModeParts};
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
}

/// Table of modes, in the order in which reports show them: name that users type, meaning, meshes that
/// support the mode, and its parts (data plane, entry, exit). Everything else about a mode follows from
/// these.
macro_rules! modes {
    ($($mode:ident = $name:literal, $meaning:literal, [$($mesh:ident),+], ($plane:ident, $entry:ident, $exit:ident);)+) => {
        /// Deployment of proxies on the request's path (docs/terminology.md).
        #[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
        pub enum Mode {
            $(#[doc = $meaning] #[serde(rename = $name)] $mode,)+
        }

        impl Mode {
            /// Every mode, in the order in which reports show them.
            pub const ALL: [Self; [$(Self::$mode),+].len()] = [$(Self::$mode),+];

            fn row(self) -> Row {
                match self {
                    $(Self::$mode => Row {
                        name: $name,
                        meaning: $meaning,
                        meshes: &[$(MeshKind::$mesh),+],
                        parts: ModeParts { data_plane: DataPlane::$plane, entry: Entry::$entry, exit: Exit::$exit },
                    },)+
                }
            }
        }
    };
}

/// Row of the table of modes.
struct Row {
    name: &'static str,
    meaning: &'static str,
    meshes: &'static [MeshKind],
    /// Parts under istiod.
    parts: ModeParts,
}

modes! {
    None = "none", "client and server talk directly: the floor", [Envoy, Istio], (None, Direct, None);
    Gateway = "gateway", "one proxy in a pod of its own", [Envoy], (None, Gateway, None);
    Sidecar = "sidecar", "a proxy in the client’s pod and one in the server’s", [Envoy, Istio], (Sidecar, Direct, None);
    Ambient = "ambient", "a node proxy (ztunnel) on both sides", [Istio], (Ztunnel, Direct, None);
    AmbientWaypoint = "ambient-waypoint", "node proxies with a waypoint between them", [Istio], (ZtunnelWaypoint, Direct, None);
    Ingress = "ingress", "into the mesh through an ingress gateway", [Istio], (Sidecar, Ingress, None);
    EgressBypass = "egress-bypass", "out of the mesh, past the sidecar", [Istio], (Sidecar, Direct, Bypass);
    EgressSidecar = "egress-sidecar", "out of the mesh through the sidecar", [Istio], (Sidecar, Direct, Sidecar);
    EgressGateway = "egress-gateway", "out of the mesh through an egress gateway", [Istio], (Sidecar, Direct, Gateway);
    EgressGatewayMtls = "egress-gateway-mtls", "through an egress gateway, mutual TLS up to it", [Istio], (Sidecar, Direct, GatewayMtls);
    EgressSni = "egress-sni", "through an egress gateway with an SNI proxy", [Istio], (Sidecar, Direct, Sni);
    ControlPlane = "control-plane", "the control plane with a fleet of simulated proxies", [Istio], (None, Direct, None);
}

impl MeshKind {
    /// Name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Envoy => "envoy",
            Self::Istio => "istio",
        }
    }

    /// True if this mesh supports `mode`.
    #[must_use]
    pub fn makes(self, mode: Mode) -> bool {
        mode.row().meshes.contains(&self)
    }

    /// Supported modes, in the order in which reports show them.
    pub fn modes(self) -> impl Iterator<Item = Mode> {
        Mode::ALL.into_iter().filter(move |mode| self.makes(*mode))
    }
}

impl fmt::Display for MeshKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Mode {
    /// Name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Short description, for legends.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// Parts of this mode under `mesh`.
    #[must_use]
    pub fn parts(self, mesh: MeshKind) -> ModeParts {
        let parts = self.row().parts;
        match (mesh, parts.data_plane) {
            (MeshKind::Envoy, DataPlane::Sidecar) => {
                ModeParts { data_plane: DataPlane::StaticEnvoy, ..parts }
            }
            _ => parts,
        }
    }

    /// True if drivers send requests in this mode.
    #[must_use]
    pub fn has_requests(self) -> bool {
        self != Self::ControlPlane
    }

    /// True if the program of this key of `components` (such as `envoy`) carries this mode's requests, or configures a
    /// proxy that does. In other modes values of the key cannot differ.
    #[must_use]
    pub fn depends_on(self, component: &str) -> bool {
        match component {
            "ztunnel" => self.is_ambient(),
            "envoy" | "pilot-agent" => !matches!(self, Self::None | Self::Ambient),
            _ => self != Self::None,
        }
    }

    /// True if istiod configures Envoys in this mode; the Envoys of a fleet are simulated.
    #[must_use]
    pub fn configures_envoys(self) -> bool {
        !self.has_requests() || self.row().parts.has_envoy()
    }

    /// True if requests go through ztunnel, the node proxy of the ambient modes.
    #[must_use]
    pub fn is_ambient(self) -> bool {
        self.row().parts.data_plane.proxies().node.is_some()
    }

    /// True if pods have sidecars configured by a control plane.
    #[must_use]
    pub fn has_sidecars(self) -> bool {
        self.row().parts.data_plane.proxies().pod.is_some()
    }

    /// True if requests leave the mesh for an external server.
    #[must_use]
    pub fn is_egress(self) -> bool {
        self.row().parts.exit != Exit::None
    }

    /// True if a proxy of the mesh reads HTTP requests before the service. False for egress modes: the
    /// client's own TLS is passed through to the server.
    #[must_use]
    pub fn reads_requests(self) -> bool {
        !self.is_egress() && self.row().parts.has_envoy()
    }

    /// True if two adjacent proxies on the path both read requests.
    #[must_use]
    pub fn has_two_readers(self) -> bool {
        self.has_sidecars() && self.reads_requests()
    }

    /// Baseline that this mode's cost is compared with; absent if it is itself a baseline. Egress modes are
    /// compared with the same TLS server reached without a proxy, not with plain HTTP.
    #[must_use]
    pub fn floor(self) -> Option<Self> {
        match self {
            Self::None | Self::EgressBypass | Self::ControlPlane => None,
            mode if mode.is_egress() => Some(Self::EgressBypass),
            _ => Some(Self::None),
        }
    }

    /// True if both modes reach the same server and can be compared: they share a baseline, or one is the
    /// other's baseline.
    #[must_use]
    pub fn compares_with(self, other: Self) -> bool {
        self.floor().unwrap_or(self) == other.floor().unwrap_or(other)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
