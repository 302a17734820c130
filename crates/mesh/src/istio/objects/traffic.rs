//! Routes, and the part of the mesh that proxies receive.

use super::subject::{Subject, object};
use experiment::MeshSettings;
use serde_json::{Value, json};
use std::time::Duration;

const API: &str = "networking.istio.io/v1";
/// Istio's default conditions, and the responses of injected errors (for gRPC: INTERNAL).
const RETRIED_ON: &str = "5xx,internal,connect-failure,refused-stream,unavailable,cancelled";

pub(super) fn virtual_service(settings: &MeshSettings, subject: &Subject<'_>) -> Option<Value> {
    if settings.retries.is_none() && settings.timeout.is_none() {
        return None;
    }
    let route = route(settings, subject);
    let spec = json!({"hosts": [subject.host()], "http": [route]});
    Some(object(API, "VirtualService", (subject.namespace, subject.service), &spec))
}

pub(super) fn route(settings: &MeshSettings, subject: &Subject<'_>) -> Value {
    let mut route = json!({"route": [destination(subject)]});
    if let Some(timeout) = settings.timeout {
        route["timeout"] = json!(seconds(timeout));
    }
    if let Some(attempts) = settings.retries {
        route["retries"] = retries(attempts);
    }
    route
}

pub(super) fn destination(subject: &Subject<'_>) -> Value {
    json!({"destination": {"host": subject.host(), "port": {"number": subject.port}}})
}

/// Istio rejects retry conditions without attempts.
fn retries(attempts: usize) -> Value {
    if attempts == 0 { json!({"attempts": 0}) } else { json!({"attempts": attempts, "retryOn": RETRIED_ON}) }
}

pub(super) fn http2_upgrade(is_set: bool, subject: &Subject<'_>) -> Option<Value> {
    let http = json!({"h2UpgradePolicy": "UPGRADE"});
    let spec = json!({"host": subject.host(), "trafficPolicy": {"connectionPool": {"http": http}}});
    is_set.then(|| object(API, "DestinationRule", (subject.namespace, subject.service), &spec))
}

/// Limits the configuration of sidecars to their own namespace and the control plane's.
pub fn sidecar_scope(is_scoped: bool, namespace: &str) -> Option<Value> {
    let spec = json!({"egress": [{"hosts": ["./*", "istio-system/*"]}]});
    is_scoped.then(|| object(API, "Sidecar", (namespace, "default"), &spec))
}

fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}
