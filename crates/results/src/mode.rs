//! Modes, by the name that users type.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Table of modes, in the order in which reports show them: name that users type, and meaning.
macro_rules! modes {
    ($($mode:ident = $name:literal, $meaning:literal;)+) => {
        /// Deployment of proxies on the request's path (docs/terminology.md).
        #[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
        pub enum Mode {
            $(#[doc = $meaning] #[serde(rename = $name)] $mode,)+
        }

        impl Mode {
            /// Every mode, in the order in which reports show them.
            pub const ALL: [Self; [$(Self::$mode),+].len()] = [$(Self::$mode),+];

            /// Name that users type.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$mode => $name,)+
                }
            }

            /// Short description, for legends.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$mode => $meaning,)+
                }
            }
        }
    };
}

modes! {
    None = "none", "client and server talk directly: the floor";
    Gateway = "gateway", "one proxy in a pod of its own";
    Sidecar = "sidecar", "a proxy in the client’s pod and one in the server’s";
    Ambient = "ambient", "a node proxy (ztunnel) on both sides";
    AmbientWaypoint = "ambient-waypoint", "node proxies with a waypoint between them";
    Ingress = "ingress", "into the mesh through an ingress gateway";
    EgressBypass = "egress-bypass", "out of the mesh, past the sidecar";
    EgressSidecar = "egress-sidecar", "out of the mesh through the sidecar";
    EgressGateway = "egress-gateway", "out of the mesh through an egress gateway";
    EgressGatewayMtls = "egress-gateway-mtls", "through an egress gateway, mutual TLS up to it";
    EgressSni = "egress-sni", "through an egress gateway with an SNI proxy";
    ControlPlane = "control-plane", "the control plane with a fleet of simulated proxies";
}

impl Mode {
    /// True if drivers send requests in this mode.
    #[must_use]
    pub fn has_requests(self) -> bool {
        self != Self::ControlPlane
    }

    /// True if requests go through ztunnel, the node proxy of the ambient modes.
    #[must_use]
    pub fn is_ambient(self) -> bool {
        matches!(self, Self::Ambient | Self::AmbientWaypoint)
    }

    /// True if requests leave the mesh for an external server.
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
