//! Filters that the experiment adds to proxies: Lua and WebAssembly, by Istio's `TrafficExtension`, which reaches
//! sidecars, gateways and waypoints alike.

use super::{Subject, object, waypoint};
use experiment::MeshSettings;
use experiment::Mode;
use experiment::mesh_settings::LuaScript;
use serde_json::{Value, json};

/// Reads a header of each request and sets one on its response: the least that a script is put into a mesh for.
const BUILT_IN: &str = r#"function envoy_on_request(handle)
  local agent = handle:headers():get("user-agent")
  handle:streamInfo():dynamicMetadata():set("meshmeter", "agent", agent or "none")
end

function envoy_on_response(handle)
  local noted = handle:streamInfo():dynamicMetadata():get("meshmeter")
  handle:headers():replace("x-meshmeter-lua", noted and noted["agent"] or "none")
end
"#;

/// The filters that are asked for. Every proxy of the namespace that reads requests runs them.
pub(super) fn extensions(settings: &MeshSettings, mode: Mode, subject: &Subject<'_>) -> Vec<Value> {
    let extension = |name: &str, mut spec: Value| {
        if mode == Mode::AmbientWaypoint {
            spec["targetRefs"] = waypoint::target();
        }
        object("extensions.istio.io/v1alpha1", "TrafficExtension", (subject.namespace, name), &spec)
    };
    let mut objects = Vec::new();
    if let Some(script) = &settings.lua {
        let code = match script {
            LuaScript::BuiltIn => BUILT_IN,
            LuaScript::Inline(text) => text,
        };
        objects.push(extension("lua", json!({"lua": {"inlineCode": code}})));
    }
    if let Some(module) = subject.wasm_module {
        let url = format!("file://{}", module.display());
        objects.push(extension("wasm", json!({"wasm": {"url": url, "failStrategy": "FAIL_CLOSE"}})));
    }
    objects
}
