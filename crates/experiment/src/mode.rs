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
}

impl Mode {
    /// Every mode, in the order in which reports show them.
    pub const ALL: [Self; 11] = [
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
    ];

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
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
