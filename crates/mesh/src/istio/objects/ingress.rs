//! The ingress gateway, by Istio's `Gateway` and `VirtualService` or by the Kubernetes Gateway API. It serves
//! TLS, mutual TLS or neither, for HTTP or for opaque TCP behind the gateway's TLS termination.

use super::subject::{Subject, object};
use super::traffic;
use crate::names::service_host;
use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::{IngressApi, IngressTls};
use experiment::{MeshSettings, Protocol};
use serde_json::{Value, json};
use std::time::Duration;

pub const NAME: &str = "ingress";
pub const HOST: &str = "shop.example";
/// Port of the gateway's Service and pod. Not 443, since only root may bind that.
pub const PORT: u16 = 8443;
pub const CREDENTIAL: &str = "ingress-credential";
/// Statuses retried by a Gateway API route in addition to Istio's defaults. gRPC statuses are not among them.
const RETRIED_CODES: [u16; 4] = [500, 502, 503, 504];
/// Request header that makes Envoy retry gRPC statuses too. Envoy removes it from external requests before it is set.
const RETRIED_GRPC_HEADER: &str = "x-envoy-retry-grpc-on";
/// gRPC status of injected errors.
const RETRIED_GRPC_STATUS: &str = "internal";
pub const ISTIO_API: &str = "networking.istio.io/v1";
pub(super) const KUBERNETES_API: &str = "gateway.networking.k8s.io/v1";

/// Public name of a topology's namespace: a name of its own if there are several namespaces.
pub fn host(namespace: &str) -> String {
    if namespace.is_empty() { HOST.to_owned() } else { format!("{namespace}.{HOST}") }
}

/// Certificates in PEM, and the name of their Secret.
#[derive(Clone, Debug)]
pub struct Credential<'a> {
    pub name: &'a str,
    pub certificate: &'a str,
    pub key: &'a str,
    pub client_authority: &'a str,
}

struct ListenerProtocol {
    /// Protocol in both kinds of `Gateway`.
    name: &'static str,
    port_name: &'static str,
    /// Kind of route in the Gateway API.
    route_kind: &'static str,
}

fn listener_protocol(protocol: Protocol, tls: IngressTls) -> ListenerProtocol {
    let (name, port_name, route_kind) = match (protocol.is_http(), tls) {
        (true, IngressTls::Off) => ("HTTP", "http", "HTTPRoute"),
        (true, IngressTls::Simple | IngressTls::Mutual) => ("HTTPS", "https", "HTTPRoute"),
        (false, IngressTls::Off) => (TCP, "tcp", "TCPRoute"),
        (false, IngressTls::Simple | IngressTls::Mutual) => ("TLS", "tls", "TLSRoute"),
    };
    ListenerProtocol { name, port_name, route_kind }
}

/// A listener without host names.
const TCP: &str = "TCP";

/// Name of the port in the gateway's Service, by which Istio detects the protocol.
pub fn port_name(protocol: Protocol, tls: IngressTls) -> &'static str {
    listener_protocol(protocol, tls).port_name
}

/// The gateway of a Service's namespace, which routes requests for a public name to it.
pub fn objects(spec: &DeploymentSpec, subject: &Subject<'_>, host: &str) -> Vec<Value> {
    let tls = spec.istio.ingress.tls;
    let protocol = listener_protocol(subject.protocol, tls);
    match spec.istio.ingress.api {
        IngressApi::Istio => {
            let server = istio_server(tls, (protocol.port_name, protocol.name), host, CREDENTIAL);
            vec![istio_gateway((subject.namespace, NAME), &[server]), istio_route(spec, subject, host)]
        }
        IngressApi::Kubernetes => {
            let host = (protocol.name != TCP).then_some(host);
            let listener = kubernetes_listener(tls, (protocol.port_name, protocol.name), host, CREDENTIAL);
            let gateway = kubernetes_gateway((subject.namespace, NAME), &[listener]);
            vec![gateway, kubernetes_route(spec, subject, protocol.route_kind, host)]
        }
    }
}

/// The gateway's certificates, if it has any, and the permission of its account to read them. Without the
/// permission, istiod does not send them.
pub fn credentials(tls: IngressTls, namespace: &str, credentials: &[Credential<'_>]) -> Vec<Value> {
    if tls == IngressTls::Off {
        return Vec::new();
    }
    let secret = |credential: &Credential<'_>| {
        let mut data = json!({"tls.crt": credential.certificate, "tls.key": credential.key});
        if tls == IngressTls::Mutual {
            data["ca.crt"] = json!(credential.client_authority);
        }
        let metadata = json!({"name": credential.name, "namespace": namespace});
        json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "stringData": data})
    };
    let role = json!({"name": "read-secrets", "namespace": namespace});
    let permission = [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": role,
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "watch", "list"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": role,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read-secrets"},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
        }),
    ];
    credentials.iter().map(secret).chain(permission).collect()
}

/// Istio's `Gateway`. `name`: namespace and name.
pub(super) fn istio_gateway(name: (&str, &str), servers: &[Value]) -> Value {
    let spec = json!({"selector": {"app": NAME}, "servers": servers});
    object(ISTIO_API, "Gateway", name, &spec)
}

/// A server of Istio's `Gateway`, with the certificate in this Secret.
pub(super) fn istio_server(
    tls: IngressTls,
    (name, protocol): (&str, &str),
    host: &str,
    credential: &str,
) -> Value {
    let mut server = json!({
        "port": {"number": PORT, "name": name, "protocol": protocol},
        "hosts": [host],
    });
    if tls != IngressTls::Off {
        let mode = if tls == IngressTls::Mutual { "MUTUAL" } else { "SIMPLE" };
        server["tls"] = json!({"mode": mode, "credentialName": credential});
    }
    server
}

fn istio_route(spec: &DeploymentSpec, subject: &Subject<'_>, host: &str) -> Value {
    let mut route = json!({"hosts": [host], "gateways": [NAME]});
    if subject.protocol.is_http() {
        route["http"] = json!([traffic::route(&spec.istio, subject)]);
    } else {
        route["tcp"] = json!([{"match": [{"port": PORT}], "route": [traffic::destination(subject)]}]);
    }
    object(ISTIO_API, "VirtualService", (subject.namespace, NAME), &route)
}

/// The Gateway API's `Gateway`. Refers to a running gateway by its Service; otherwise Istio would create a
/// Deployment. `name`: namespace and name.
pub(super) fn kubernetes_gateway(name: (&str, &str), listeners: &[Value]) -> Value {
    let spec = json!({
        "gatewayClassName": "istio",
        "addresses": [{"type": "Hostname", "value": service_host(NAME, name.0)}],
        "listeners": listeners,
    });
    object(KUBERNETES_API, "Gateway", name, &spec)
}

/// A listener of the Gateway API's `Gateway`, with the certificate in this Secret.
pub(super) fn kubernetes_listener(
    tls: IngressTls,
    (name, protocol): (&str, &str),
    host: Option<&str>,
    credential: &str,
) -> Value {
    let mut listener = json!({
        "name": name,
        "port": PORT,
        "protocol": protocol,
        "allowedRoutes": {"namespaces": {"from": "Same"}},
    });
    if let Some(host) = host {
        listener["hostname"] = json!(host);
    }
    if tls != IngressTls::Off {
        listener["tls"] = json!({"mode": "Terminate", "certificateRefs": [{"name": credential}]});
    }
    if tls == IngressTls::Mutual {
        listener["tls"]["options"] = json!({"gateway.istio.io/tls-terminate-mode": "MUTUAL"});
    }
    listener
}

/// A Gateway API rule that matches every request.
pub(super) fn kubernetes_rule(settings: &MeshSettings, subject: &Subject<'_>) -> Value {
    let mut rule = json!({"backendRefs": [{"name": subject.service, "port": subject.port}]});
    if let Some(timeout) = settings.timeout {
        rule["timeouts"] = json!({"request": milliseconds(timeout)});
    }
    if let Some(attempts) = settings.retries {
        rule["retry"] = json!({"attempts": attempts, "codes": RETRIED_CODES});
        if subject.protocol == Protocol::Grpc && attempts > 0 {
            let header = json!({"name": RETRIED_GRPC_HEADER, "value": RETRIED_GRPC_STATUS});
            rule["filters"] =
                json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [header]}}]);
        }
    }
    rule
}

fn kubernetes_route(spec: &DeploymentSpec, subject: &Subject<'_>, kind: &str, host: Option<&str>) -> Value {
    let rule = kubernetes_rule(&spec.istio, subject);
    let mut route = json!({"parentRefs": [{"name": NAME}], "rules": [rule]});
    if let Some(host) = host {
        route["hostnames"] = json!([host]);
    }
    object(KUBERNETES_API, kind, (subject.namespace, NAME), &route)
}

/// The Gateway API does not allow fractions.
fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis().max(1))
}
