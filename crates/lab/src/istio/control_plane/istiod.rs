//! How istiod is started, and in what it differs from an Istio as it is installed.
//!
//! The proxies are upstream Envoys unless the user names another, and lack the filters that only Istio's own build of
//! Envoy has: its telemetry (`istio_stats`), the exchange of peers' metadata, and the filter that sets ALPN. istiod is then
//! told to leave them out, so their cost is in no figure; with Istio's own build nothing is left out. Sidecars are not
//! injected: we start them with what an injected container is given.

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

/// The port of its debug pages and statistics.
pub const DEBUG_PORT: u16 = 15014;

/// The port of its readiness.
pub const HTTP_PORT: u16 = 8080;

/// The port at which it validates objects.
pub const WEBHOOK_PORT: u16 = 15017;

/// The settings of the whole mesh. Metrics are what Istio installs where the proxies can make them, and nobody's where
/// they lack the filter; a trial's own objects say what is logged and traced.
pub fn mesh_config(is_istios_envoy: bool) -> Value {
    let metrics = if is_istios_envoy { json!({"metrics": ["prometheus"]}) } else { json!({}) };
    json!({
        "trustDomain": "cluster.local",
        "rootNamespace": super::SYSTEM_NAMESPACE,
        "defaultProviders": metrics,
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
        format!("--httpsAddr=:{WEBHOOK_PORT}"),
        format!("--monitoringAddr=:{DEBUG_PORT}"),
        "--log_output_level=default:info".to_owned(),
    ]
}

/// Its environment.
pub fn environment(is_istios_envoy: bool) -> BTreeMap<String, OsString> {
    let filters_that_upstream_lacks = [
        ("MESHMETER_UPSTREAM_ENVOY", "true"),
        ("PILOT_ENABLE_METADATA_EXCHANGE", "false"),
        ("PILOT_ENABLE_ALPN_FILTER", "false"),
        ("AMBIENT_ENABLE_MULTI_NETWORK_WAYPOINT", "false"),
    ];
    let left_out = filters_that_upstream_lacks.into_iter().filter(|_| !is_istios_envoy);
    let variables = [
        ("POD_NAME", NAME),
        ("POD_NAMESPACE", super::SYSTEM_NAMESPACE),
        ("SERVICE_ACCOUNT", NAME),
        ("CLUSTER_ID", "Kubernetes"),
        ("PILOT_CERT_PROVIDER", "istiod"),
        // Sidecars are started by us.
        ("INJECT_ENABLED", "false"),
        // We tell the API ourselves that istiod validates, and where: under this name its certificate is good too.
        ("ISTIOD_CUSTOM_HOST", super::validation::HOST),
        ("VALIDATION_WEBHOOK_CONFIG_NAME", ""),
        ("INJECTION_WEBHOOK_CONFIG_NAME", ""),
        // The modes with ztunnel and waypoints; sidecars speak to each other as they do without.
        ("PILOT_ENABLE_AMBIENT", "true"),
        ("PILOT_ENABLE_SENDING_HBONE", "false"),
        // Who may ask for certificates in the names of its node's pods.
        ("CA_TRUSTED_NODE_ACCOUNTS", "istio-system/ztunnel"),
        // Gateways run where we start them.
        ("PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER", "false"),
    ];
    variables.into_iter().chain(left_out).map(|(name, value)| (name.to_owned(), value.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_out_where_the_proxies_are_istios_own() {
        let upstream = environment(false);
        assert_eq!(upstream["PILOT_ENABLE_ALPN_FILTER"], "false");
        assert_eq!(upstream["MESHMETER_UPSTREAM_ENVOY"], "true");
        let own = environment(true);
        assert!(
            !own.contains_key("PILOT_ENABLE_ALPN_FILTER") && !own.contains_key("MESHMETER_UPSTREAM_ENVOY")
        );
        assert_eq!(mesh_config(true)["defaultProviders"]["metrics"][0], "prometheus");
        assert_eq!(mesh_config(false)["defaultProviders"], json!({}));
    }
}
