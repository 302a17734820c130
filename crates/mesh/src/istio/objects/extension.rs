//! Filters that the experiment adds to sidecars, gateways and waypoints, Lua and WebAssembly, by `TrafficExtension`.

use super::subject::object;
use super::waypoint;
use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::LuaScript;
use serde_json::{Value, json};
use std::path::Path;

/// Reads a header of each request and sets one on its response: a minimal script with an effect.
const BUILT_IN: &str = r#"function envoy_on_request(handle)
  local agent = handle:headers():get("user-agent")
  handle:streamInfo():dynamicMetadata():set("meshmeter", "agent", agent or "none")
end

function envoy_on_response(handle)
  local noted = handle:streamInfo():dynamicMetadata():get("meshmeter")
  handle:headers():replace("x-meshmeter-lua", noted and noted["agent"] or "none")
end
"#;

pub(super) fn extensions(spec: &DeploymentSpec, namespace: &str, wasm_module: Option<&Path>) -> Vec<Value> {
    let extension = |name: &str, mut extension: Value| {
        waypoint::attach(&mut extension, spec);
        object("extensions.istio.io/v1alpha1", "TrafficExtension", (namespace, name), &extension)
    };
    let mut objects = Vec::new();
    if let Some(script) = &spec.istio.lua {
        let code = match script {
            LuaScript::BuiltIn => BUILT_IN,
            LuaScript::Inline(text) => text,
        };
        objects.push(extension("lua", json!({"lua": {"inlineCode": code}})));
    }
    if let Some(module) = wasm_module {
        let url = format!("file://{}", module.display());
        objects.push(extension("wasm", json!({"wasm": {"url": url, "failStrategy": "FAIL_CLOSE"}})));
    }
    objects
}
