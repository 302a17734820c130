//! How requests are routed, and what proxies are told of the mesh.

use super::{Subject, object};
use experiment::MeshSettings;
use serde_json::{Value, json};
use std::time::Duration;

const API: &str = "networking.istio.io/v1";

/// What is tried again: Istio's own conditions, and the answers that a service gives by its error rate (gRPC's are INTERNAL).
const RETRIED_ON: &str = "5xx,internal,connect-failure,refused-stream,unavailable,cancelled";

/// Timeout and retries of a route to the service, where they are asked for.
pub(super) fn virtual_service(settings: &MeshSettings, subject: &Subject<'_>) -> Option<Value> {
    if settings.retries.is_none() && settings.timeout.is_none() {
        return None;
    }
    let route = route(settings, subject);
    let spec = json!({"hosts": [subject.host()], "http": [route]});
    Some(object(API, "VirtualService", (subject.namespace, subject.service), &spec))
}

/// One route of a VirtualService: to the service, with the timeout and retries asked for.
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

/// The service as where a route leads.
pub(super) fn destination(subject: &Subject<'_>) -> Value {
    json!({"destination": {"host": subject.host(), "port": {"number": subject.port}}})
}

/// A policy with none says nothing of conditions: Istio refuses such.
fn retries(attempts: usize) -> Value {
    if attempts == 0 { json!({"attempts": 0}) } else { json!({"attempts": attempts, "retryOn": RETRIED_ON}) }
}

/// Has proxies speak HTTP/2 with those before the service.
pub(super) fn http2_upgrade(is_asked: bool, subject: &Subject<'_>) -> Option<Value> {
    let http = json!({"h2UpgradePolicy": "UPGRADE"});
    let spec = json!({"host": subject.host(), "trafficPolicy": {"connectionPool": {"http": http}}});
    is_asked.then(|| object(API, "DestinationRule", (subject.namespace, subject.service), &spec))
}

/// Tells sidecars of their own namespace and the control plane's, and of nothing else.
pub(super) fn sidecar_scope(is_scoped: bool, namespace: &str) -> Option<Value> {
    let spec = json!({"egress": [{"hosts": ["./*", "istio-system/*"]}]});
    is_scoped.then(|| object(API, "Sidecar", (namespace, "default"), &spec))
}

/// A duration as Istio's kinds want it.
fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}
