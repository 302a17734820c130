//! The ingress gateway: how clients outside the mesh get in. Istio's `Gateway` and `VirtualService`, or the Kubernetes
//! Gateway API, with TLS of one side, of both, or none; by HTTP or by connections that the gateway leads on unread, once it
//! has taken their TLS off.

use super::{Subject, object, traffic};
use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::{IngressApi, IngressSettings, IngressTls};
use experiment::{MeshSettings, Protocol};
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

/// Statuses on which the Gateway API's route tries again, besides what Istio adds of its own accord. gRPC's are no such.
const RETRIED_CODES: [u16; 4] = [500, 502, 503, 504];
/// With this header of a request its router tries again on statuses of gRPC too. Envoy takes it out of what clients outside
/// send, and asks for it after a route's own filters have set it.
const RETRIED_GRPC_HEADER: &str = "x-envoy-retry-grpc-on";
/// The status of gRPC that the service gives by its error rate.
const RETRIED_GRPC_STATUS: &str = "internal";

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

/// What clients outside speak with the gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Spoken {
    Http,
    Https,
    /// Bytes that say nothing of whom they are for.
    Tcp,
    Tls,
}

impl Spoken {
    fn of(spec: &DeploymentSpec) -> Self {
        match (spec.protocol.is_http(), spec.istio.ingress.tls) {
            (true, IngressTls::Off) => Self::Http,
            (true, IngressTls::Simple | IngressTls::Mutual) => Self::Https,
            (false, IngressTls::Off) => Self::Tcp,
            (false, IngressTls::Simple | IngressTls::Mutual) => Self::Tls,
        }
    }

    /// Its word in both kinds of `Gateway`.
    fn word(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Https => "HTTPS",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
        }
    }

    /// The name of a port that speaks it.
    fn port_name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        }
    }

    /// The Gateway API's kind of route for it.
    fn route_kind(self) -> &'static str {
        match self {
            Self::Http | Self::Https => "HTTPRoute",
            Self::Tcp => "TCPRoute",
            Self::Tls => "TLSRoute",
        }
    }
}

/// The name that the gateway's port has at its Service: it tells Istio the protocol.
#[must_use]
pub fn port_name(spec: &DeploymentSpec) -> &'static str {
    Spoken::of(spec).port_name()
}

/// The gateway and its route to the service.
#[must_use]
pub fn objects(spec: &DeploymentSpec, subject: &Subject<'_>) -> Vec<Value> {
    match spec.istio.ingress.api {
        IngressApi::Istio => vec![istio_gateway(spec, subject.namespace), istio_route(spec, subject)],
        IngressApi::Kubernetes => {
            vec![kubernetes_gateway(spec, subject.namespace), kubernetes_route(spec, subject)]
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

fn istio_gateway(spec: &DeploymentSpec, namespace: &str) -> Value {
    let tls = spec.istio.ingress.tls;
    let mut server = json!({
        "port": {
            "number": PORT,
            "name": port_name(spec),
            "protocol": Spoken::of(spec).word(),
        },
        "hosts": [HOST],
    });
    match tls {
        IngressTls::Off => {}
        IngressTls::Simple => server["tls"] = json!({"mode": "SIMPLE", "credentialName": CREDENTIAL}),
        IngressTls::Mutual => server["tls"] = json!({"mode": "MUTUAL", "credentialName": CREDENTIAL}),
    }
    let spec = json!({"selector": {"app": NAME}, "servers": [server]});
    object(ISTIO_API, "Gateway", (namespace, NAME), &spec)
}

fn istio_route(spec: &DeploymentSpec, subject: &Subject<'_>) -> Value {
    let mut route = json!({"hosts": [HOST], "gateways": [NAME]});
    if spec.protocol.is_http() {
        route["http"] = json!([traffic::route(&spec.istio, subject)]);
    } else {
        route["tcp"] = json!([{"match": [{"port": PORT}], "route": [traffic::destination(subject)]}]);
    }
    object(ISTIO_API, "VirtualService", (subject.namespace, NAME), &route)
}

/// A gateway that runs already, behind a Service: else Istio would make a Deployment for it.
fn kubernetes_gateway(spec: &DeploymentSpec, namespace: &str) -> Value {
    let tls = spec.istio.ingress.tls;
    let mut listener = json!({
        "name": port_name(spec),
        "port": PORT,
        "protocol": Spoken::of(spec).word(),
        "allowedRoutes": {"namespaces": {"from": "Same"}},
    });
    if Spoken::of(spec) != Spoken::Tcp {
        listener["hostname"] = json!(HOST);
    }
    if tls != IngressTls::Off {
        listener["tls"] = json!({"mode": "Terminate", "certificateRefs": [{"name": CREDENTIAL}]});
    }
    if tls == IngressTls::Mutual {
        listener["tls"]["options"] = json!({"gateway.istio.io/tls-terminate-mode": "MUTUAL"});
    }
    let spec = json!({
        "gatewayClassName": "istio",
        "addresses": [{"type": "Hostname", "value": super::host(NAME, namespace)}],
        "listeners": [listener],
    });
    object(KUBERNETES_API, "Gateway", (namespace, NAME), &spec)
}

fn kubernetes_route(spec: &DeploymentSpec, subject: &Subject<'_>) -> Value {
    let settings: &MeshSettings = &spec.istio;
    let mut rule = json!({"backendRefs": [{"name": subject.service, "port": subject.port}]});
    if let Some(timeout) = settings.timeout {
        rule["timeouts"] = json!({"request": milliseconds(timeout)});
    }
    if let Some(attempts) = settings.retries {
        rule["retry"] = json!({"attempts": attempts, "codes": RETRIED_CODES});
        if spec.protocol == Protocol::Grpc && attempts > 0 {
            let header = json!({"name": RETRIED_GRPC_HEADER, "value": RETRIED_GRPC_STATUS});
            rule["filters"] =
                json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [header]}}]);
        }
    }
    let mut route = json!({"parentRefs": [{"name": NAME}], "rules": [rule]});
    let spoken = Spoken::of(spec);
    if spoken != Spoken::Tcp {
        route["hostnames"] = json!([HOST]);
    }
    object(KUBERNETES_API, spoken.route_kind(), (subject.namespace, NAME), &route)
}

/// A duration as the kinds of the Gateway API want it, which take no fractions.
fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis().max(1))
}
