//! What a simulated proxy is.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// What a proxy subscribes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub enum ProxyKind {
    /// An Envoy beside an application.
    Sidecar,
    /// An Envoy at the edge of the mesh.
    Gateway,
    /// An Envoy for the services of a namespace in ambient mode.
    Waypoint,
    /// The node proxy of ambient mode.
    Ztunnel,
}

impl ProxyKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Sidecar, Self::Gateway, Self::Waypoint, Self::Ztunnel];

    /// The word that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sidecar => "sidecar",
            Self::Gateway => "gateway",
            Self::Waypoint => "waypoint",
            Self::Ztunnel => "ztunnel",
        }
    }
}

/// Variant of the aggregated discovery service.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Hash)]
pub enum XdsVariant {
    /// `DeltaAggregatedResources`: what changed. istiod's default.
    #[default]
    Delta,
    /// `StreamAggregatedResources`: all resources of a type at once.
    StateOfTheWorld,
}

impl XdsVariant {
    /// The word that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::StateOfTheWorld => "state-of-the-world",
        }
    }
}

/// A proxy's identity, as it tells the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxySpec {
    /// What it subscribes to.
    pub kind: ProxyKind,
    /// Name of its pod.
    pub name: String,
    /// Namespace of its pod.
    pub namespace: String,
    /// Address of its pod.
    pub address: Ipv4Addr,
    /// Service account of its pod.
    pub service_account: String,
    /// Labels of its pod.
    pub labels: BTreeMap<String, String>,
    /// Kubernetes node of its pod.
    pub node: String,
    /// The Kubernetes cluster, such as `Kubernetes`.
    pub cluster_id: String,
    /// Istio's version that it claims.
    pub istio_version: String,
    /// Sidecars: its agent serves names, so that it asks for the name table.
    pub dns_capture: bool,
    /// Ztunnels: it asks for addresses only as it needs them.
    pub on_demand: bool,
}
