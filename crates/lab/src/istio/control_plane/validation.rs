//! What looks at Istio's objects before the API takes them: istiod's own validation, as a webhook that a cluster has too.
//!
//! The schemas of the kinds alone let much pass that istiod then leaves out without a word, and an experiment would be
//! measured without what it asks for. With it the API refuses such an object and says why.

use super::istiod;
use crate::istio::api::Api;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// Where istiod validates, seen from the pod that the API runs in too.
pub const HOST: &str = "127.0.0.1";

/// The webhook of Istio's chart, but that it looks at every object and not only at those of a revision.
pub fn webhook(root_certificate: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "istio-validator"},
        "webhooks": [{
            "name": "validation.istio.io",
            "clientConfig": {
                "url": format!("https://{HOST}:{}/validate", istiod::WEBHOOK_PORT),
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

/// Whether the API asks istiod by now: then it refuses an object that no schema forbids.
pub fn is_in_force(api: &Api) -> bool {
    let no_patch = json!({
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": "refused", "namespace": super::SYSTEM_NAMESPACE},
        "spec": {"configPatches": [{"applyTo": "CLUSTER", "patch": {"operation": "ADD"}}]},
    });
    api.would_take(&no_patch).is_err_and(|error| error.contains("missing patch value"))
}
