//! Types of resources that proxies subscribe to.

use crate::keys::words::words;

/// Resource type.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
#[repr(u8)]
pub enum ResourceType {
    /// CDS.
    Clusters,
    /// EDS.
    Endpoints,
    /// LDS.
    Listeners,
    /// RDS.
    Routes,
    /// SDS.
    Secrets,
    /// ECDS.
    ExtensionConfigs,
    /// NDS: name table of a sidecar's agent.
    NameTables,
    /// Workloads as read by a waypoint, for peer metadata.
    Workloads,
    /// Workloads and services as read by a ztunnel.
    Addresses,
    /// Policies as read by a ztunnel.
    Authorizations,
}

words!(ResourceType {
    Clusters = "cds",
    Endpoints = "eds",
    Listeners = "lds",
    Routes = "rds",
    Secrets = "sds",
    ExtensionConfigs = "ecds",
    NameTables = "nds",
    Workloads = "workloads",
    Addresses = "addresses",
    Authorizations = "authorizations"
});

impl ResourceType {
    /// Type URL on the wire.
    #[must_use]
    pub fn url(self) -> &'static str {
        match self {
            Self::Clusters => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Endpoints => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Listeners => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::Routes => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            Self::Secrets => "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
            Self::ExtensionConfigs => "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
            Self::NameTables => "type.googleapis.com/istio.networking.nds.v1.NameTable",
            Self::Workloads => "type.googleapis.com/istio.workload.Workload",
            Self::Addresses => "type.googleapis.com/istio.workload.Address",
            Self::Authorizations => "type.googleapis.com/istio.security.Authorization",
        }
    }

    /// Type with this type URL.
    #[must_use]
    pub fn from_url(url: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|resource_type| resource_type.url().as_bytes() == url)
    }

    /// True if resources are subscribed to by name, as referenced by clusters or listeners. Other types are
    /// subscribed to as a whole.
    #[must_use]
    pub fn is_named(self) -> bool {
        matches!(self, Self::Endpoints | Self::Routes | Self::Secrets | Self::ExtensionConfigs)
    }

    /// True if a response in the state-of-the-world variant has all resources of the type.
    #[must_use]
    pub fn is_whole_in_state_of_the_world(self) -> bool {
        !self.is_named()
    }

    /// True if istiod responds to every request for the type. False for secrets and extension configs: istiod
    /// may send no response, for example for secrets that it does not find or may not send.
    #[must_use]
    pub fn is_always_answered(self) -> bool {
        !matches!(self, Self::Secrets | Self::ExtensionConfigs)
    }

    /// True if resources have names. The single name table has none.
    #[must_use]
    pub fn has_names(self) -> bool {
        self != Self::NameTables
    }
}
