//! The ingress gateway: how clients outside the mesh get in. Istio's `Gateway` and `VirtualService`, or the Kubernetes
//! Gateway API, with TLS of one side, of both, or none.

use super::{Subject, object, traffic};
use experiment::MeshSettings;
use experiment::mesh_settings::{IngressApi, IngressSettings, IngressTls};
use serde_json::{Value, json};
use std::time::Duration;

/// Its name: its pod's, its account's, its Service's, its Gateway's.
pub const NAME: &str = "ingress";
/// The name that clients outside know the service by.
pub const HOST: &str = "shop.example";
/// The gateway's port, at its Service and its pod. Not 443: a proxy that is not root may not listen there.
pub const PORT: u16 = 8443;
/// The Secret with the gateway's certificate.
pub const CREDENTIAL: &str = "ingress-credential";

const ISTIO_API: &str = "networking.istio.io/v1";
const KUBERNETES_API: &str = "gateway.networking.k8s.io/v1";

/// Certificates in PEM.
#[derive(Clone, Debug)]
pub struct Credential<'a> {
    /// The gateway's certificate.
    pub certificate: &'a str,
    /// Its private key.
    pub key: &'a str,
    /// The authority of the clients' certificates.
    pub client_authority: &'a str,
}

/// The name that the gateway's port has at its Service: it tells Istio the protocol.
#[must_use]
pub fn port_name(tls: IngressTls) -> &'static str {
    if tls == IngressTls::Off { "http" } else { "https" }
}

/// The gateway and its route to the service.
#[must_use]
pub fn objects(settings: &MeshSettings, subject: &Subject<'_>) -> Vec<Value> {
    match settings.ingress.api {
        IngressApi::Istio => {
            vec![istio_gateway(settings.ingress, subject.namespace), istio_route(settings, subject)]
        }
        IngressApi::Kubernetes => {
            vec![kubernetes_gateway(settings.ingress, subject.namespace), kubernetes_route(settings, subject)]
        }
    }
}

/// The gateway's certificate, where it has one, and the right of its account to read it, without which istiod hands it
/// to nobody.
#[must_use]
pub fn credential(ingress: IngressSettings, namespace: &str, credential: &Credential<'_>) -> Vec<Value> {
    if ingress.tls == IngressTls::Off {
        return Vec::new();
    }
    let mut data = json!({"tls.crt": credential.certificate, "tls.key": credential.key});
    if ingress.tls == IngressTls::Mutual {
        data["ca.crt"] = json!(credential.client_authority);
    }
    let metadata = json!({"name": CREDENTIAL, "namespace": namespace});
    let role = json!({"name": "read-secrets", "namespace": namespace});
    vec![
        json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "stringData": data}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": role,
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "watch", "list"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": role,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read-secrets"},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
        }),
    ]
}

fn istio_gateway(ingress: IngressSettings, namespace: &str) -> Value {
    let protocol = if ingress.tls == IngressTls::Off { "HTTP" } else { "HTTPS" };
    let mut server = json!({
        "port": {"number": PORT, "name": port_name(ingress.tls), "protocol": protocol},
        "hosts": [HOST],
    });
    match ingress.tls {
        IngressTls::Off => {}
        IngressTls::Simple => server["tls"] = json!({"mode": "SIMPLE", "credentialName": CREDENTIAL}),
        IngressTls::Mutual => server["tls"] = json!({"mode": "MUTUAL", "credentialName": CREDENTIAL}),
    }
    let spec = json!({"selector": {"app": NAME}, "servers": [server]});
    object(ISTIO_API, "Gateway", (namespace, NAME), &spec)
}

fn istio_route(settings: &MeshSettings, subject: &Subject<'_>) -> Value {
    let spec = json!({
        "hosts": [HOST],
        "gateways": [NAME],
        "http": [traffic::route(settings, subject)],
    });
    object(ISTIO_API, "VirtualService", (subject.namespace, NAME), &spec)
}

/// A gateway that runs already, behind a Service: else Istio would make a Deployment for it.
fn kubernetes_gateway(ingress: IngressSettings, namespace: &str) -> Value {
    let mut listener = json!({
        "name": port_name(ingress.tls),
        "port": PORT,
        "hostname": HOST,
        "protocol": if ingress.tls == IngressTls::Off { "HTTP" } else { "HTTPS" },
        "allowedRoutes": {"namespaces": {"from": "Same"}},
    });
    if ingress.tls != IngressTls::Off {
        listener["tls"] = json!({"mode": "Terminate", "certificateRefs": [{"name": CREDENTIAL}]});
    }
    if ingress.tls == IngressTls::Mutual {
        listener["tls"]["options"] = json!({"gateway.istio.io/tls-terminate-mode": "MUTUAL"});
    }
    let spec = json!({
        "gatewayClassName": "istio",
        "addresses": [{"type": "Hostname", "value": super::host(NAME, namespace)}],
        "listeners": [listener],
    });
    object(KUBERNETES_API, "Gateway", (namespace, NAME), &spec)
}

fn kubernetes_route(settings: &MeshSettings, subject: &Subject<'_>) -> Value {
    let mut rule = json!({"backendRefs": [{"name": subject.service, "port": subject.port}]});
    if let Some(timeout) = settings.timeout {
        rule["timeouts"] = json!({"request": milliseconds(timeout)});
    }
    if let Some(attempts) = settings.retries {
        rule["retry"] = json!({"attempts": attempts});
    }
    let spec = json!({"parentRefs": [{"name": NAME}], "hostnames": [HOST], "rules": [rule]});
    object(KUBERNETES_API, "HTTPRoute", (subject.namespace, NAME), &spec)
}

/// A duration as the kinds of the Gateway API want it, which take no fractions.
fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis().max(1))
}
