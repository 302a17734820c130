//! Names and ports that Istio fixes, and those shared by all parts of the mesh.

use experiment::mesh_settings::WorkloadKeys;

pub const SYSTEM_NAMESPACE: &str = "istio-system";
/// Name of the only node, which all pods are reported to run on.
pub const NODE: &str = "meshmeter";
pub const CLUSTER_DOMAIN: &str = "svc.cluster.local";
pub const TRUST_DOMAIN: &str = "cluster.local";
pub const ISTIOD: &str = "istiod";
/// The Service by which proxies reach istiod.
pub const DISCOVERY_NAME: &str = "istiod.istio-system.svc";
/// istiod's port for xDS and certificates, over mutual TLS.
pub const DISCOVERY_PORT: u16 = 15012;
/// istiod's port for debug endpoints and metrics.
pub const ISTIOD_DEBUG_PORT: u16 = 15014;
/// istiod's port for readiness, which serves the debug endpoints too.
pub const ISTIOD_HTTP_PORT: u16 = 8080;
pub const ISTIOD_WEBHOOK_PORT: u16 = 15017;
/// Audience of the tokens by which proxies authenticate to istiod.
pub const TOKEN_AUDIENCE: &str = "istio-ca";
/// Admin interface of sidecars, gateways, waypoints and ztunnel.
pub const ADMIN_PORT: u16 = 15000;
/// Status and merged metrics of pilot-agent, and metrics of ztunnel.
pub const STATUS_PORT: u16 = 15020;
/// Statistics of an Envoy, for Prometheus.
pub const STATISTICS_PORT: u16 = 15090;
pub const READINESS_PORT: u16 = 15021;
/// Suffix of an Envoy's statistics of its subscriptions. A sidecar keeps `update_time` only for its clusters
/// and listeners as a whole, unless its `proxyStatsMatcher` includes this suffix.
pub const UPDATE_TIME: &str = "update_time";
/// HBONE: mutual TLS with HTTP/2 CONNECT inside, between ztunnels and waypoints.
pub const HBONE_PORT: u16 = 15008;
/// Port of a sidecar or ztunnel that takes outbound connections.
pub const OUTBOUND_PORT: u16 = 15001;
/// Port of a sidecar or ztunnel that takes inbound connections.
pub const INBOUND_PORT: u16 = 15006;

pub fn service_host(service: &str, namespace: &str) -> String {
    format!("{service}.{namespace}.{CLUSTER_DOMAIN}")
}

/// A component's name as the name of a file.
pub fn file_name(component: &str) -> String {
    component.replace('/', "--")
}

/// Setting of a proxy's agent, and its value, with which it makes these keys; absent for those that it makes by default.
pub fn setting_for_keys(keys: WorkloadKeys) -> Option<(&'static str, &'static str)> {
    match keys {
        WorkloadKeys::Rsa => None,
        WorkloadKeys::Ecdsa => Some(("ECC_SIGNATURE_ALGORITHM", "ECDSA")),
    }
}
