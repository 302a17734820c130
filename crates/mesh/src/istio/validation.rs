//! Istio's validation webhook: the API rejects objects that istiod would otherwise skip silently, which would
//! leave an experiment measured without its settings.

use crate::kubernetes::client::ApiClient;
use crate::names::{ISTIOD_WEBHOOK_PORT, SYSTEM_NAMESPACE};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// The webhook of Istio's chart, for objects of every revision. The API connects to istiod at `host`.
pub fn webhook(host: Ipv4Addr, root_certificate: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "istio-validator"},
        "webhooks": [{
            "name": "validation.istio.io",
            "clientConfig": {
                "url": format!("https://{host}:{ISTIOD_WEBHOOK_PORT}/validate"),
                "caBundle": BASE64_STANDARD.encode(root_certificate),
            },
            "rules": [{
                "operations": ["CREATE", "UPDATE"],
                "apiGroups": [
                    "security.istio.io", "networking.istio.io", "telemetry.istio.io", "extensions.istio.io",
                ],
                "apiVersions": ["*"],
                "resources": ["*"],
            }],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    })
}

/// True if the API calls the webhook by now: it then rejects an object that no schema forbids.
pub fn is_active(api: &ApiClient) -> bool {
    let no_patch = json!({
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": "refused", "namespace": SYSTEM_NAMESPACE},
        "spec": {"configPatches": [{"applyTo": "CLUSTER", "patch": {"operation": "ADD"}}]},
    });
    api.dry_run(&no_patch).is_err_and(|error| error.contains("missing patch value"))
}
