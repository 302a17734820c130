//! How istiod is started, and in what it differs from an Istio as it is installed.
//!
//! The proxies are upstream Envoys, which lack the filters that only Istio's own build of Envoy has: its telemetry
//! (`istio_stats`), the exchange of peers' metadata, and the filter that sets ALPN. istiod is told to leave them out, so
//! their cost is in no figure. Sidecars are not injected: we start them with what an injected container is given.

use crate::istio::objects::telemetry::extension_providers;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// The component's name.
pub const NAME: &str = "istiod";

/// The name that proxies know it by, as in a cluster.
pub const DISCOVERY_NAME: &str = "istiod.istio-system.svc";

/// The port that proxies get their configuration and certificates from.
pub const DISCOVERY_PORT: u16 = 15012;

/// The port of its readiness and its debug pages.
pub const HTTP_PORT: u16 = 8080;

/// The settings of the whole mesh. Telemetry is nobody's by default, since its usual providers are filters that upstream
/// Envoy lacks; a trial's own objects say what is logged and traced.
pub fn mesh_config() -> Value {
    json!({
        "trustDomain": "cluster.local",
        "rootNamespace": super::SYSTEM_NAMESPACE,
        "defaultProviders": {},
        "extensionProviders": extension_providers(super::SYSTEM_NAMESPACE),
        "defaultConfig": {"discoveryAddress": format!("{DISCOVERY_NAME}:{DISCOVERY_PORT}")},
    })
}

/// Its command line.
pub fn arguments(kubeconfig: &Path, mesh_config: &Path) -> Vec<String> {
    vec![
        "discovery".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--meshConfig={}", mesh_config.display()),
        format!("--httpAddr=:{HTTP_PORT}"),
        // No plain-text gRPC: proxies authenticate, as in a cluster.
        "--grpcAddr=".to_owned(),
        format!("--secureGRPCAddr=:{DISCOVERY_PORT}"),
        "--monitoringAddr=:15014".to_owned(),
        "--log_output_level=default:info".to_owned(),
    ]
}

/// Its environment.
pub fn environment() -> BTreeMap<String, OsString> {
    let variables = [
        ("POD_NAME", NAME),
        ("POD_NAMESPACE", super::SYSTEM_NAMESPACE),
        ("SERVICE_ACCOUNT", NAME),
        ("CLUSTER_ID", "Kubernetes"),
        ("PILOT_CERT_PROVIDER", "istiod"),
        // Sidecars are started by us, and no webhooks call back.
        ("INJECT_ENABLED", "false"),
        ("VALIDATION_WEBHOOK_CONFIG_NAME", ""),
        ("INJECTION_WEBHOOK_CONFIG_NAME", ""),
        // Filters that upstream Envoy lacks.
        ("MESHMETER_UPSTREAM_ENVOY", "true"),
        ("PILOT_ENABLE_METADATA_EXCHANGE", "false"),
        ("PILOT_ENABLE_ALPN_FILTER", "false"),
        // The modes with ztunnel and waypoints; sidecars speak to each other as they do without.
        ("PILOT_ENABLE_AMBIENT", "true"),
        ("PILOT_ENABLE_SENDING_HBONE", "false"),
        ("AMBIENT_ENABLE_MULTI_NETWORK_WAYPOINT", "false"),
        // Gateways run where we start them.
        ("PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER", "false"),
    ];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}
