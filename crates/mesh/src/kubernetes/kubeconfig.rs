//! Kubeconfigs.

use serde_json::{Value, json};

/// A kubeconfig of one cluster, one user and one context, all with the same name so that it can be merged with others
/// (`KUBECONFIG=a:b`). `authority_data` is the certificate authority of the API server in base64.
pub fn kubeconfig(
    name: &str,
    server: &str,
    namespace: Option<&str>,
    authority_data: &str,
    user: &Value,
) -> Value {
    let mut context = json!({"cluster": name, "user": name});
    if let Some(namespace) = namespace {
        context["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {
            "server": server,
            "certificate-authority-data": authority_data,
        }}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    })
}
