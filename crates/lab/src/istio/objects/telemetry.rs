//! What proxies tell of requests: access logs and traces.

use super::{object, waypoint};
use experiment::Mode;
use experiment::environment::AccessLog;
use serde_json::{Value, json};

/// The Service that spans are sent to, in the control plane's namespace.
pub const TRACE_COLLECTOR: &str = "trace-collector";
/// Its port: that of OTLP over HTTP.
pub const TRACE_COLLECTOR_PORT: u16 = 4318;

const TEXT: &str = "meshmeter-text";
const JSON: &str = "meshmeter-json";
const TRACES: &str = "meshmeter-traces";

/// The providers that a mesh's configuration has to name for [`telemetry`] to use them. The formats of the access log are
/// Istio's own defaults.
#[must_use]
pub fn extension_providers(system_namespace: &str) -> Value {
    json!([
        {"name": TEXT, "envoyFileAccessLog": {"path": "/dev/stdout"}},
        {"name": JSON, "envoyFileAccessLog": {"path": "/dev/stdout", "logFormat": {"labels": {}}}},
        {"name": TRACES, "opentelemetry": {
            "service": super::host(TRACE_COLLECTOR, system_namespace),
            "port": TRACE_COLLECTOR_PORT,
            "http": {"path": "/v1/traces", "timeout": "5s"},
        }},
    ])
}

/// What the proxies of a namespace write and send; nothing where nothing is asked for.
pub(super) fn telemetry(
    namespace: &str,
    access_log: AccessLog,
    tracing_fraction: Option<f64>,
    mode: Mode,
) -> Option<Value> {
    let mut spec = json!({});
    if access_log != AccessLog::Off {
        let provider = if access_log == AccessLog::Json { JSON } else { TEXT };
        spec["accessLogging"] = json!([{"providers": [{"name": provider}]}]);
    }
    if let Some(fraction) = tracing_fraction {
        spec["tracing"] =
            json!([{"providers": [{"name": TRACES}], "randomSamplingPercentage": fraction * 100.0}]);
    }
    if spec.as_object().is_some_and(serde_json::Map::is_empty) {
        return None;
    }
    if mode == Mode::AmbientWaypoint {
        spec["targetRefs"] = waypoint::target();
    }
    Some(object("telemetry.istio.io/v1", "Telemetry", (namespace, "meshmeter"), &spec))
}
