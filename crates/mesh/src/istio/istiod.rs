//! Settings of istiod, and how they differ from an installed Istio.
//! Sidecars are not injected: they are started with the settings that an injected container gets. Istio's own
//! build of Envoy is sent everything that istiod sends in a cluster. The upstream build lacks the filters for
//! telemetry (`istio_stats`), metadata exchange and ALPN: istiod then omits them, and no figure contains their cost.
//!
//! Without telemetry there are no default metrics providers, as with `telemetry.enabled=false` in Istio's
//! chart, and proxies do not exchange the metadata that labels metrics (`PILOT_ENABLE_METADATA_EXCHANGE`).
//! Waypoints still look up their peers: istiod has no setting to turn that off.

use super::objects::telemetry::extension_providers;
use crate::names::{
    DISCOVERY_NAME, DISCOVERY_PORT, ISTIOD, ISTIOD_DEBUG_PORT, ISTIOD_HTTP_PORT, ISTIOD_WEBHOOK_PORT,
    SYSTEM_NAMESPACE, TRUST_DOMAIN,
};
use experiment::settings::istio::IstiodSettings;
use results::{ProxyBuild, ProxySetup};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The mesh configuration. Metrics are the ones that Istio installs by default, or none; a deployment's
/// objects configure logs and traces.
pub fn mesh_config(telemetry: bool) -> Value {
    let metrics = if telemetry { json!({"metrics": ["prometheus"]}) } else { json!({}) };
    json!({
        "trustDomain": TRUST_DOMAIN,
        "rootNamespace": SYSTEM_NAMESPACE,
        "defaultProviders": metrics,
        "extensionProviders": extension_providers(SYSTEM_NAMESPACE),
        "defaultConfig": {"discoveryAddress": format!("{DISCOVERY_NAME}:{DISCOVERY_PORT}")},
    })
}

pub fn arguments(kubeconfig: &Path, mesh_config: &Path) -> Vec<String> {
    vec![
        "discovery".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--meshConfig={}", mesh_config.display()),
        format!("--httpAddr=:{ISTIOD_HTTP_PORT}"),
        // Disables plaintext gRPC: proxies authenticate, as in a cluster.
        "--grpcAddr=".to_owned(),
        format!("--secureGRPCAddr=:{DISCOVERY_PORT}"),
        format!("--httpsAddr=:{ISTIOD_WEBHOOK_PORT}"),
        format!("--monitoringAddr=:{ISTIOD_DEBUG_PORT}"),
        "--log_output_level=default:info".to_owned(),
    ]
}

/// Identity of one istiod of a control plane.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Distinguishes it in leader election.
    pub pod: &'a str,
    /// Host by which the API reaches its webhook, covered by its certificate.
    pub webhook_host: &'a str,
}

/// Makes an istiod built by `meshmeter lab install` omit everything for waypoints that upstream Envoy lacks.
/// That istiod rejects values that are not booleans; a released istiod ignores the variable.
pub const UPSTREAM_ENVOY: &str = "MESHMETER_UPSTREAM_ENVOY";

const METADATA_EXCHANGE: &str = "PILOT_ENABLE_METADATA_EXCHANGE";

pub fn environment(
    proxies: ProxySetup,
    identity: &Identity<'_>,
    settings: &IstiodSettings,
) -> BTreeMap<String, OsString> {
    let left_out: &[_] = match proxies.build {
        ProxyBuild::Upstream => &[
            (UPSTREAM_ENVOY, "true"),
            (METADATA_EXCHANGE, "false"),
            ("PILOT_ENABLE_ALPN_FILTER", "false"),
            ("AMBIENT_ENABLE_MULTI_NETWORK_WAYPOINT", "false"),
        ],
        ProxyBuild::Istio if proxies.telemetry => &[],
        ProxyBuild::Istio => &[(METADATA_EXCHANGE, "false")],
    };
    let variables = [
        ("POD_NAME", identity.pod),
        ("POD_NAMESPACE", SYSTEM_NAMESPACE),
        ("SERVICE_ACCOUNT", ISTIOD),
        ("CLUSTER_ID", "Kubernetes"),
        ("PILOT_CERT_PROVIDER", "istiod"),
        // The lab starts the sidecars.
        ("INJECT_ENABLED", "false"),
        // Meshmeter writes the webhook itself (`validation.rs`).
        ("ISTIOD_CUSTOM_HOST", identity.webhook_host),
        ("VALIDATION_WEBHOOK_CONFIG_NAME", ""),
        ("INJECTION_WEBHOOK_CONFIG_NAME", ""),
        // For ztunnel and waypoints. Sidecars connect to each other as they do without ambient mode.
        ("PILOT_ENABLE_AMBIENT", "true"),
        ("PILOT_ENABLE_SENDING_HBONE", "false"),
        // Lets ztunnel request certificates for the pods of its node.
        ("CA_TRUSTED_NODE_ACCOUNTS", "istio-system/ztunnel"),
        // The lab starts the gateways.
        ("PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER", "false"),
    ];
    let variables = variables.into_iter().chain(left_out.iter().copied());
    let variables = variables.map(|(name, value)| (name, value.to_owned()));
    let variables = variables.chain(of_settings(settings));
    variables.map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// Variables that Istio's chart derives from the values of `pilot` and the container's limits.
fn of_settings(settings: &IstiodSettings) -> impl Iterator<Item = (&'static str, String)> {
    let milliseconds = |duration: Duration| format!("{}ms", duration.as_millis());
    let variables = [
        ("PILOT_DEBOUNCE_AFTER", settings.debounce_after.map(milliseconds)),
        ("PILOT_DEBOUNCE_MAX", settings.debounce_max.map(milliseconds)),
        ("GOMAXPROCS", settings.cpu_limit_cores.map(|cores| cores.ceil().to_string())),
        ("GOMEMLIMIT", settings.memory_limit_bytes.map(|bytes| bytes.to_string())),
    ];
    variables.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISTIOS: ProxySetup = ProxySetup { build: ProxyBuild::Istio, telemetry: true };
    const IDENTITY: Identity<'_> = Identity { pod: "istiod-2", webhook_host: "10.77.0.5" };

    #[test]
    fn settings_become_variables_as_in_the_chart() {
        let settings = IstiodSettings {
            cpu_limit_cores: Some(1.5),
            memory_limit_bytes: Some(2 << 30),
            debounce_after: Some(Duration::from_millis(250)),
            debounce_max: Some(Duration::from_secs(3)),
            ..IstiodSettings::default()
        };
        let set = environment(ISTIOS, &IDENTITY, &settings);
        for (name, value) in [
            ("GOMAXPROCS", "2"),
            ("GOMEMLIMIT", "2147483648"),
            ("PILOT_DEBOUNCE_AFTER", "250ms"),
            ("PILOT_DEBOUNCE_MAX", "3000ms"),
            ("POD_NAME", "istiod-2"),
        ] {
            assert_eq!(set[name], value, "{name}");
            let unset = environment(ISTIOS, &IDENTITY, &IstiodSettings::default());
            assert!(name == "POD_NAME" || !unset.contains_key(name), "{name}");
        }
    }

    #[test]
    fn istio_build_gets_everything_except_disabled_telemetry() {
        let environment = |build, telemetry| {
            environment(ProxySetup { build, telemetry }, &IDENTITY, &IstiodSettings::default())
        };
        let left_out = |set: BTreeMap<String, OsString>| {
            let switches = [UPSTREAM_ENVOY, METADATA_EXCHANGE, "PILOT_ENABLE_ALPN_FILTER"];
            switches.map(|name| set.get(name).and_then(|value| value.to_str()).map(ToOwned::to_owned))
        };
        let some = |value: &str| Some(value.to_owned());
        assert_eq!(left_out(environment(ProxyBuild::Istio, true)), [None, None, None]);
        assert_eq!(left_out(environment(ProxyBuild::Istio, false)), [None, some("false"), None]);
        let upstream = left_out(environment(ProxyBuild::Upstream, false));
        assert_eq!(upstream, [some("true"), some("false"), some("false")]);
        assert_eq!(mesh_config(true)["defaultProviders"]["metrics"][0], "prometheus");
        assert_eq!(mesh_config(false)["defaultProviders"], json!({}));
    }
}
