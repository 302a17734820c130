//! Egress paths to an external service that speaks TLS itself: through the sidecar, an egress gateway, a
//! gateway reached over mutual TLS, and an SNI proxy behind it. They follow Istio's documentation ("Egress
//! gateways for HTTPS traffic", "Egress using wildcard hosts"). In all of them, the client's own TLS ends at
//! the external service.

use super::subject::object;
use crate::names::service_host;
use experiment::dataplane::Exit;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// Host name by which clients reach the external service.
pub const EXTERNAL_HOST: &str = "server.external.example";
pub const EXTERNAL_WILDCARD: &str = "*.external.example";
pub const EXTERNAL_PORT: u16 = 8443;
pub const GATEWAY: &str = "egress";
pub const GATEWAY_PORT: u16 = 8443;
/// The SNI proxy in the gateway's pod, by its host name in the mesh.
pub const SNI_PROXY_HOST: &str = "sni-proxy.local";
pub const SNI_PROXY_PORT: u16 = 18443;
const API: &str = "networking.istio.io/v1";
/// Subset of the gateway's endpoints with the TLS settings of this egress path.
pub const SUBSET: &str = "external";

/// Objects of an egress path to the external service with these addresses, on this port; none for `egress-bypass`.
pub fn objects(exit: Exit, namespace: &str, servers: &[Ipv4Addr], port: u16) -> Vec<Value> {
    match exit {
        Exit::Sidecar => vec![external_service(namespace, servers, port)],
        Exit::Gateway => vec![
            external_service(namespace, servers, port),
            gateway(namespace, EXTERNAL_HOST, "PASSTHROUGH"),
            to_gateway(namespace, &json!({"mode": "DISABLE"})),
            via_gateway(namespace, EXTERNAL_HOST, port, None),
        ],
        Exit::GatewayMtls => vec![
            external_service(namespace, servers, port),
            gateway(namespace, EXTERNAL_HOST, "ISTIO_MUTUAL"),
            to_gateway(namespace, &json!({"mode": "ISTIO_MUTUAL", "sni": EXTERNAL_HOST})),
            via_gateway(namespace, EXTERNAL_HOST, port, Some((EXTERNAL_HOST, port))),
        ],
        Exit::Sni => vec![
            any_external_service(namespace, port),
            sni_proxy(namespace),
            sni_proxy_plaintext(namespace),
            gateway(namespace, EXTERNAL_WILDCARD, "ISTIO_MUTUAL"),
            to_gateway(namespace, &json!({"mode": "ISTIO_MUTUAL", "sni": EXTERNAL_HOST})),
            via_gateway(namespace, EXTERNAL_WILDCARD, port, Some((SNI_PROXY_HOST, SNI_PROXY_PORT))),
        ],
        Exit::None | Exit::Bypass => Vec::new(),
    }
}

fn external_service(namespace: &str, servers: &[Ipv4Addr], port: u16) -> Value {
    service_entry((namespace, "external"), EXTERNAL_HOST, (port, "tls", "TLS"), Some(servers))
}

/// All services of a domain. Only the SNI proxy behind the gateway resolves them.
fn any_external_service(namespace: &str, port: u16) -> Value {
    service_entry((namespace, "external"), EXTERNAL_WILDCARD, (port, "tls", "TLS"), None)
}

fn sni_proxy(namespace: &str) -> Value {
    let port = (SNI_PROXY_PORT, "tcp", "TCP");
    service_entry((namespace, "sni-proxy"), SNI_PROXY_HOST, port, Some(&[Ipv4Addr::LOCALHOST]))
}

/// A service outside the mesh.
pub(super) fn service_entry(
    name: (&str, &str),
    host: &str,
    (port, port_name, protocol): (u16, &str, &str),
    endpoints: Option<&[Ipv4Addr]>,
) -> Value {
    let mut spec = json!({
        "hosts": [host],
        "location": "MESH_EXTERNAL",
        "resolution": if endpoints.is_some() { "STATIC" } else { "NONE" },
        "ports": [{"number": port, "name": port_name, "protocol": protocol}],
    });
    if let Some(endpoints) = endpoints {
        spec["endpoints"] = endpoints.iter().map(|address| json!({"address": address})).collect();
    }
    object(API, "ServiceEntry", name, &spec)
}

fn sni_proxy_plaintext(namespace: &str) -> Value {
    let spec = json!({"host": SNI_PROXY_HOST, "trafficPolicy": {"tls": {"mode": "DISABLE"}}});
    object(API, "DestinationRule", (namespace, "sni-proxy"), &spec)
}

fn gateway(namespace: &str, external: &str, tls: &str) -> Value {
    let spec = json!({
        "selector": {"app": GATEWAY},
        "servers": [{
            "port": {"number": GATEWAY_PORT, "name": "tls", "protocol": "TLS"},
            "hosts": [external],
            "tls": {"mode": tls},
        }],
    });
    object(API, "Gateway", (namespace, GATEWAY), &spec)
}

fn to_gateway(namespace: &str, tls: &Value) -> Value {
    let policy = json!({"portLevelSettings": [{"port": {"number": GATEWAY_PORT}, "tls": tls}]});
    let spec = json!({
        "host": service_host(GATEWAY, namespace),
        "subsets": [{"name": SUBSET, "trafficPolicy": policy}],
    });
    object(API, "DestinationRule", (namespace, GATEWAY), &spec)
}

/// Routes to the gateway and from there to `next`; absent: by SNI to the external service, for connections
/// whose TLS the gateway does not terminate.
fn via_gateway(namespace: &str, external: &str, port: u16, next: Option<(&str, u16)>) -> Value {
    let to = |host: &str, port: u16| json!([{"destination": {"host": host, "port": {"number": port}}}]);
    let mut to_gateway = json!({
        "match": [{"gateways": ["mesh"], "port": port, "sniHosts": [external]}],
        "route": to(&service_host(GATEWAY, namespace), GATEWAY_PORT),
    });
    to_gateway["route"][0]["destination"]["subset"] = json!(SUBSET);
    let mut matched = json!({"gateways": [GATEWAY], "port": GATEWAY_PORT});
    let mut spec = json!({"hosts": [external], "gateways": ["mesh", GATEWAY]});
    if let Some((host, port)) = next {
        spec["tls"] = json!([to_gateway]);
        spec["tcp"] = json!([{"match": [matched], "route": to(host, port)}]);
    } else {
        matched["sniHosts"] = json!([EXTERNAL_HOST]);
        spec["tls"] = json!([to_gateway, {"match": [matched], "route": to(EXTERNAL_HOST, port)}]);
    }
    object(API, "VirtualService", (namespace, "external"), &spec)
}
