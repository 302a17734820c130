//! Access logs and traces.

use super::subject::object;
use super::{filters, waypoint};
use crate::names::service_host;
use experiment::environment::{AccessLog, DeploymentSpec};
use serde_json::{Value, json};

pub const TRACE_COLLECTOR: &str = "trace-collector";
pub const TRACE_COLLECTOR_PORT: u16 = 4318;
const TEXT: &str = "meshmeter-text";
const JSON: &str = "meshmeter-json";
const TRACES: &str = "meshmeter-traces";

/// Providers required in the mesh configuration. The access log formats are Istio's defaults.
pub fn extension_providers(system_namespace: &str) -> Value {
    let own = [
        json!({"name": TEXT, "envoyFileAccessLog": {"path": "/dev/stdout"}}),
        json!({"name": JSON, "envoyFileAccessLog": {"path": "/dev/stdout", "logFormat": {"labels": {}}}}),
        json!({"name": TRACES, "opentelemetry": {
            "service": service_host(TRACE_COLLECTOR, system_namespace),
            "port": TRACE_COLLECTOR_PORT,
            "http": {"path": "/v1/traces", "timeout": "5s"},
        }}),
    ];
    own.into_iter().chain(filters::extension_providers()).collect()
}

pub(super) fn telemetry(spec: &DeploymentSpec, namespace: &str) -> Option<Value> {
    let access_log = spec.proxy.access_log;
    let mut telemetry = json!({});
    if access_log != AccessLog::Off {
        let provider = if access_log == AccessLog::Json { JSON } else { TEXT };
        telemetry["accessLogging"] = json!([{"providers": [{"name": provider}]}]);
    }
    if let Some(fraction) = spec.istio.tracing_fraction {
        telemetry["tracing"] =
            json!([{"providers": [{"name": TRACES}], "randomSamplingPercentage": fraction * 100.0}]);
    }
    if telemetry.as_object().is_some_and(serde_json::Map::is_empty) {
        return None;
    }
    waypoint::attach(&mut telemetry, spec);
    Some(object("telemetry.istio.io/v1", "Telemetry", (namespace, "meshmeter"), &telemetry))
}
