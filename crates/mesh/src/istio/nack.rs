//! Rejected configuration, with the proxy's reason: Envoy counts rejections, but writes the reason only to its log.
//! A proxy that has rejected an update keeps an older configuration or has none, and waiting does not fix
//! that. Callers therefore call [`check_not_rejected`] while they wait.

use crate::Result;
use experiment::environment::EnvironmentError;
use experiment::mesh_settings::ExtraObjects;
use serde_json::Value;
use std::fmt;

/// Texts before and after the type of the rejected configuration.
const KIND: (&str, &str) = ("config for type.googleapis.com/", " rejected: ");
/// End of an Envoy log line as written under pilot-agent.
const END_OF_LINE: &str = "\tthread=";
/// Text of a log line that explains why a WebAssembly module cannot run.
const MODULE_FAILURE: &str = "\terror\tenvoy wasm ";
/// Lines checked at the end of a log: everything that a proxy writes while it starts.
pub const CHECKED_LINES: usize = 500;
/// Maximum length of a reason in characters: some quote the whole resource.
pub(crate) const MAX_REASON_CHARS: usize = 600;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Nack {
    /// Resource type, such as `Listener`.
    kind: String,
    pub(crate) reason: String,
}

impl fmt::Display for Nack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it refused its {}: {}", self.kind, self.reason)
    }
}

impl std::error::Error for Nack {}

/// The first rejection in these log lines. A reason may span several lines.
pub(crate) fn first_nack(lines: &[String]) -> Option<Nack> {
    let (number, (kind, begun)) = lines.iter().enumerate().find_map(|(number, line)| {
        let (_, told) = line.split_once(KIND.0)?;
        Some((number, told.split_once(KIND.1)?))
    })?;
    let mut reason = String::new();
    for line in std::iter::once(begun).chain(lines[number + 1..].iter().map(String::as_str)) {
        let (text, is_last) = line.split_once(END_OF_LINE).map_or((line, false), |(text, _)| (text, true));
        if !reason.is_empty() && !text.trim().is_empty() {
            reason.push(' ');
        }
        reason.push_str(text.trim());
        if is_last || reason.len() > MAX_REASON_CHARS {
            break;
        }
    }
    for failure in failures_of_modules(&lines[..number]) {
        reason.push_str(": ");
        reason.push_str(failure);
    }
    let kind = kind.rsplit('.').next().unwrap_or(kind).to_owned();
    Some(Nack { kind, reason: shortened(&reason) })
}

/// Failures of WebAssembly modules, without duplicates: the NACK itself does not include the cause.
fn failures_of_modules(lines: &[String]) -> Vec<&str> {
    let mut failures = Vec::new();
    for line in lines {
        let Some((_, told)) = line.split_once(MODULE_FAILURE) else { continue };
        // The failure follows the location in Envoy's source.
        let failure = told.split_once('\t').map_or(told, |(_, failure)| failure);
        let failure = failure.split_once(END_OF_LINE).map_or(failure, |(text, _)| text);
        let failure = failure.trim_start_matches("Wasm VM failed ");
        if !failures.contains(&failure) {
            failures.push(failure);
        }
    }
    failures
}

pub fn check_not_rejected(proxy: &str, log_tail: &[String]) -> Result<()> {
    let Some(nack) = first_nack(log_tail) else { return Ok(()) };
    Err(EnvironmentError::new(format!("configure {proxy}"), nack).with_hint(OWN_CONFIGURATION))
}

/// Adds a hint to the error: the experiment's own objects whose kind can bring the rejected type of
/// configuration into proxies.
pub fn with_objects_behind(error: EnvironmentError, extra: Option<&ExtraObjects>) -> EnvironmentError {
    let refused = error.source.as_ref().and_then(|source| source.downcast_ref::<Nack>());
    let Some(kind) = refused.map(|refusal| refusal.kind.as_str()) else { return error };
    let names: Vec<String> = extra
        .into_iter()
        .flat_map(|extra| &extra.objects)
        .filter(|object| brings(object, kind))
        .filter_map(|object| {
            Some(format!("{} {}", object["kind"].as_str()?, object["metadata"]["name"].as_str()?))
        })
        .collect();
    if names.is_empty() {
        return error;
    }
    error.with_hint(format!("of `istio.extra`, this may be the cause: {}", names.join(", ")))
}

fn brings(object: &Value, kind: &str) -> bool {
    const OF_LISTENERS: &[&str] =
        &["LISTENER", "FILTER_CHAIN", "NETWORK_FILTER", "HTTP_FILTER", "LISTENER_FILTER"];
    let places: &[&str] = match (object["kind"].as_str(), kind) {
        (Some("WasmPlugin" | "TrafficExtension"), "TypedExtensionConfig" | "Listener") => return true,
        (Some("EnvoyFilter"), "Cluster") => &["CLUSTER"],
        (Some("EnvoyFilter"), "Listener") => OF_LISTENERS,
        (Some("EnvoyFilter"), "RouteConfiguration") => &["ROUTE_CONFIGURATION", "VIRTUAL_HOST", "HTTP_ROUTE"],
        (Some("EnvoyFilter"), "TypedExtensionConfig") => &["EXTENSION_CONFIG"],
        _ => return false,
    };
    let patches = object["spec"]["configPatches"].as_array();
    let applies = |patch: &Value| patch["applyTo"].as_str().is_some_and(|place| places.contains(&place));
    patches.is_some_and(|patches| patches.iter().any(applies))
}

const OWN_CONFIGURATION: &str =
    "what an experiment itself brings into proxies is in `istio.lua`, `istio.wasm` and `istio.extra`";

fn shortened(reason: &str) -> String {
    match reason.char_indices().nth(MAX_REASON_CHARS) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// Logs of real Envoys under pilot-agent.
    const OF_A_SCRIPT: &str = "2026-11-20T19:23:22.396195Z\tinfo\tEnvoy proxy is starting
2026-11-20T19:23:22.407271Z\twarning\tenvoy config source/grpc_subscription_impl.cc:160\tgRPC config for type.googleapis.com/envoy.config.listener.v3.Listener rejected: Error adding/updating listener(s) virtualInbound: script load error: [string \"function envoy_on_request(handle)...\"]:2: unexpected symbol near '='
\tthread=102
2026-11-20T19:23:23.407271Z\tinfo\tmore";
    const OF_A_MODULE: &str = "2026-11-20T19:42:13.225575Z\terror\tenvoy wasm source/extensions/common/wasm/wasm_vm.cc:38\tFailed to load Wasm module due to a missing import: env.absent\tthread=106
2026-11-20T19:23:22.396195Z\terror\tenvoy wasm source/extensions/common/wasm/wasm.cc:104\tWasm VM failed Failed to initialize Wasm code\tthread=102
2026-11-20T19:23:22.396427Z\tcritical\tenvoy wasm source/extensions/common/wasm/wasm.cc:626\tPlugin mesh-1.wasm failed to load\tthread=102
2026-11-20T19:23:22.407255Z\twarning\tenvoy config source/delta_subscription_state.cc:282\tdelta config for type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig rejected: Unable to create Wasm plugin mesh-1.wasm\tthread=102";

    #[test]
    fn nack_has_reason_from_proxy_log() {
        let told = |text: &str| first_nack(&lines(text)).map(|refusal| refusal.to_string());
        insta::assert_snapshot!(told(OF_A_SCRIPT).unwrap(), @r#"it refused its Listener: Error adding/updating listener(s) virtualInbound: script load error: [string "function envoy_on_request(handle)..."]:2: unexpected symbol near '='"#);
        insta::assert_snapshot!(told(OF_A_MODULE).unwrap(), @"it refused its TypedExtensionConfig: Unable to create Wasm plugin mesh-1.wasm: Failed to load Wasm module due to a missing import: env.absent: Failed to initialize Wasm code");
        assert_eq!(told("2026-11-20T19:23:22Z\tinfo\tEnvoy proxy is ready"), None);
    }

    #[test]
    fn hint_names_objects_behind_rejected_configuration() {
        let filter = |name: &str, place: &str| {
            json!({
                "kind": "EnvoyFilter",
                "metadata": {"name": name},
                "spec": {"configPatches": [{"applyTo": "CLUSTER"}, {"applyTo": place}]},
            })
        };
        let rule = json!({"kind": "DestinationRule", "metadata": {"name": "rule"}});
        let objects = vec![filter("of-routes", "HTTP_ROUTE"), rule, filter("of-listeners", "HTTP_FILTER")];
        let extra = ExtraObjects { text: String::new(), objects };
        let hint = |kind: &str| {
            let log = lines(&format!("config for type.googleapis.com/a.{kind} rejected: no"));
            let refusal = check_not_rejected("client-proxy", &log).unwrap_err();
            with_objects_behind(refusal, Some(&extra)).hint.unwrap()
        };
        let named = "of `istio.extra`, this may be the cause: EnvoyFilter ";
        assert_eq!(hint("Listener"), format!("{named}of-listeners"));
        assert_eq!(hint("RouteConfiguration"), format!("{named}of-routes"));
        assert_eq!(hint("Cluster"), format!("{named}of-routes, EnvoyFilter of-listeners"));
        assert_eq!(hint("Secret"), OWN_CONFIGURATION);
    }

    #[test]
    fn endless_reason_is_truncated() {
        let endless = format!("gRPC config for type.googleapis.com/a.Cluster rejected: {}", "ä".repeat(5000));
        let refusal = first_nack(&[endless]).unwrap();
        assert_eq!(refusal.reason.chars().count(), MAX_REASON_CHARS + 1);
    }
}
