//! Arrangements of proxies on a request's path, named as users name them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Who configures the proxies.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshKind {
    /// Envoy with static files, no control plane.
    Envoy,
    /// istiod configures everything.
    Istio,
}

/// An arrangement of proxies on the request's path (docs/terminology.md).
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Client and server talk directly: the floor.
    None,
    /// One proxy in a pod of its own between client and server.
    Gateway,
    /// One proxy in the client's pod and one in the server's, traffic redirected transparently.
    Sidecar,
    /// A node proxy (ztunnel) on both sides.
    Ambient,
    /// Node proxies with an HTTP proxy (waypoint) between them.
    AmbientWaypoint,
    /// Into the mesh through an ingress gateway.
    Ingress,
    /// Out of the mesh, past the sidecar.
    EgressBypass,
    /// Out of the mesh through the sidecar.
    EgressSidecar,
    /// Out of the mesh through an egress gateway.
    EgressGateway,
    /// The same with mutual TLS between sidecar and gateway.
    EgressGatewayMtls,
    /// The same with an SNI proxy behind the gateway.
    EgressSni,
    /// The control plane with a fleet of simulated proxies: no requests.
    ControlPlane,
}

impl MeshKind {
    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Envoy => "envoy",
            Self::Istio => "istio",
        }
    }

    /// The modes that it can make, in the order in which reports show them.
    #[must_use]
    pub fn modes(self) -> &'static [Mode] {
        match self {
            Self::Envoy => &[Mode::None, Mode::Gateway, Mode::Sidecar],
            Self::Istio => &[
                Mode::None,
                Mode::Sidecar,
                Mode::Ambient,
                Mode::AmbientWaypoint,
                Mode::Ingress,
                Mode::EgressBypass,
                Mode::EgressSidecar,
                Mode::EgressGateway,
                Mode::EgressGatewayMtls,
                Mode::EgressSni,
                Mode::ControlPlane,
            ],
        }
    }
}

impl fmt::Display for MeshKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Mode {
    /// Every mode, in the order in which reports show them.
    pub const ALL: [Self; 12] = [
        Self::None,
        Self::Gateway,
        Self::Sidecar,
        Self::Ambient,
        Self::AmbientWaypoint,
        Self::Ingress,
        Self::EgressBypass,
        Self::EgressSidecar,
        Self::EgressGateway,
        Self::EgressGatewayMtls,
        Self::EgressSni,
        Self::ControlPlane,
    ];

    /// Whether drivers send requests in it.
    #[must_use]
    pub fn has_requests(self) -> bool {
        self != Self::ControlPlane
    }

    /// Whether requests go through ztunnel, the node proxy of the ambient modes.
    #[must_use]
    pub fn is_ambient(self) -> bool {
        matches!(self, Self::Ambient | Self::AmbientWaypoint)
    }

    /// Whether a pod has a proxy of its own beside it, under a control plane.
    #[must_use]
    pub fn has_sidecars(self) -> bool {
        !matches!(self, Self::None | Self::Gateway | Self::ControlPlane) && !self.is_ambient()
    }

    /// Whether requests leave the mesh for a server outside it.
    #[must_use]
    pub fn is_egress(self) -> bool {
        matches!(
            self,
            Self::EgressBypass
                | Self::EgressSidecar
                | Self::EgressGateway
                | Self::EgressGatewayMtls
                | Self::EgressSni
        )
    }

    /// Whether a proxy of the mesh before the service reads HTTP requests. Of what leaves the mesh it does not: the
    /// client's own TLS goes through to the server.
    #[must_use]
    pub fn reads_requests(self) -> bool {
        matches!(self, Self::Gateway | Self::Sidecar | Self::AmbientWaypoint | Self::Ingress)
    }

    /// Whether two proxies that read requests stand next to each other in it.
    #[must_use]
    pub fn has_two_readers(self) -> bool {
        matches!(self, Self::Sidecar | Self::Ingress)
    }

    /// The mode that this one's cost is the difference to; absent where it is itself a floor. What leaves the mesh for a
    /// server that speaks TLS is held against the same without a proxy on the way, and not against plain HTTP.
    #[must_use]
    pub fn floor(self) -> Option<Self> {
        match self {
            Self::None | Self::EgressBypass | Self::ControlPlane => None,
            mode if mode.is_egress() => Some(Self::EgressBypass),
            _ => Some(Self::None),
        }
    }

    /// Whether the two lead to the same server and can be set side by side: they share a floor, or one is the other's.
    #[must_use]
    pub fn compares_with(self, other: Self) -> bool {
        self.floor().unwrap_or(self) == other.floor().unwrap_or(other)
    }

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gateway => "gateway",
            Self::Sidecar => "sidecar",
            Self::Ambient => "ambient",
            Self::AmbientWaypoint => "ambient-waypoint",
            Self::Ingress => "ingress",
            Self::EgressBypass => "egress-bypass",
            Self::EgressSidecar => "egress-sidecar",
            Self::EgressGateway => "egress-gateway",
            Self::EgressGatewayMtls => "egress-gateway-mtls",
            Self::EgressSni => "egress-sni",
            Self::ControlPlane => "control-plane",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
