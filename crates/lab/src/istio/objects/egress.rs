//! Ways out of the mesh to a server that speaks TLS itself: through the sidecar, an egress gateway, a gateway that is
//! reached by mutual TLS, and a proxy behind it that reads names of servers (SNI) alone.
//!
//! As Istio's documentation has them ("Egress gateways for HTTPS traffic", "Egress using wildcard hosts"); the client's own
//! TLS goes through to the server in all of them.

use super::{host, object};
use experiment::Mode;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// The server outside, as clients name it.
pub const EXTERNAL_HOST: &str = "server.external.example";
/// All servers of that domain.
pub const EXTERNAL_WILDCARD: &str = "*.external.example";
/// Its port, on which it speaks TLS.
pub const EXTERNAL_PORT: u16 = 8443;

/// The egress gateway's name: its pod's, its account's, its Service's, its Gateway's.
pub const GATEWAY: &str = "egress";
/// The gateway's port.
pub const GATEWAY_PORT: u16 = 8443;

/// What the mesh calls the proxy that reads names of servers, in the gateway's pod.
pub const SNI_PROXY_HOST: &str = "sni-proxy.local";
/// Its port there.
pub const SNI_PROXY_PORT: u16 = 18443;

const API: &str = "networking.istio.io/v1";
/// The set of the gateway's endpoints that speak as this way out wants it.
pub const SUBSET: &str = "external";

/// The objects of an egress mode. The server outside is at this address. Of `egress-bypass` there are none: the mesh
/// does not know of it.
#[must_use]
pub fn objects(mode: Mode, namespace: &str, server: Ipv4Addr) -> Vec<Value> {
    match mode {
        Mode::EgressSidecar => vec![external_server(namespace, server)],
        Mode::EgressGateway => vec![
            external_server(namespace, server),
            gateway(namespace, EXTERNAL_HOST, "PASSTHROUGH"),
            to_gateway(namespace, &json!({"mode": "DISABLE"})),
            by_way_of_gateway(namespace, EXTERNAL_HOST, &through_unread()),
        ],
        Mode::EgressGatewayMtls => vec![
            external_server(namespace, server),
            gateway(namespace, EXTERNAL_HOST, "ISTIO_MUTUAL"),
            to_gateway(namespace, &json!({"mode": "ISTIO_MUTUAL", "sni": EXTERNAL_HOST})),
            by_way_of_gateway(namespace, EXTERNAL_HOST, &from_gateway_to(EXTERNAL_HOST, EXTERNAL_PORT)),
        ],
        Mode::EgressSni => vec![
            any_external_server(namespace),
            sni_proxy(namespace),
            sni_proxy_in_plain_text(namespace),
            gateway(namespace, EXTERNAL_WILDCARD, "ISTIO_MUTUAL"),
            to_gateway(namespace, &json!({"mode": "ISTIO_MUTUAL", "sni": EXTERNAL_HOST})),
            by_way_of_gateway(namespace, EXTERNAL_WILDCARD, &from_gateway_to(SNI_PROXY_HOST, SNI_PROXY_PORT)),
        ],
        _ => Vec::new(),
    }
}

/// One server, known by name and address.
fn external_server(namespace: &str, server: Ipv4Addr) -> Value {
    let spec = json!({
        "hosts": [EXTERNAL_HOST],
        "location": "MESH_EXTERNAL",
        "resolution": "STATIC",
        "ports": [{"number": EXTERNAL_PORT, "name": "tls", "protocol": "TLS"}],
        "endpoints": [{"address": server}],
    });
    object(API, "ServiceEntry", (namespace, "external"), &spec)
}

/// Every server of a domain. Where each is only the proxy behind the gateway finds out.
fn any_external_server(namespace: &str) -> Value {
    let spec = json!({
        "hosts": [EXTERNAL_WILDCARD],
        "location": "MESH_EXTERNAL",
        "resolution": "NONE",
        "ports": [{"number": EXTERNAL_PORT, "name": "tls", "protocol": "TLS"}],
    });
    object(API, "ServiceEntry", (namespace, "external"), &spec)
}

fn sni_proxy(namespace: &str) -> Value {
    let spec = json!({
        "hosts": [SNI_PROXY_HOST],
        "location": "MESH_EXTERNAL",
        "resolution": "STATIC",
        "ports": [{"number": SNI_PROXY_PORT, "name": "tcp", "protocol": "TCP"}],
        "endpoints": [{"address": Ipv4Addr::LOCALHOST}],
    });
    object(API, "ServiceEntry", (namespace, "sni-proxy"), &spec)
}

fn sni_proxy_in_plain_text(namespace: &str) -> Value {
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

/// What the sidecar speaks with the gateway.
fn to_gateway(namespace: &str, tls: &Value) -> Value {
    let policy = json!({"portLevelSettings": [{"port": {"number": GATEWAY_PORT}, "tls": tls}]});
    let spec = json!({
        "host": host(GATEWAY, namespace),
        "subsets": [{"name": SUBSET, "trafficPolicy": policy}],
    });
    object(API, "DestinationRule", (namespace, GATEWAY), &spec)
}

/// What the gateway does with a connection that it does not open: it looks at the name of the server.
fn through_unread() -> Value {
    json!({"tls": {
        "match": [{"gateways": [GATEWAY], "port": GATEWAY_PORT, "sniHosts": [EXTERNAL_HOST]}],
        "route": [{"destination": {"host": EXTERNAL_HOST, "port": {"number": EXTERNAL_PORT}}}],
    }})
}

/// What the gateway does with a connection that it took out of its mutual TLS.
fn from_gateway_to(next: &str, port: u16) -> Value {
    json!({"tcp": {
        "match": [{"gateways": [GATEWAY], "port": GATEWAY_PORT}],
        "route": [{"destination": {"host": next, "port": {"number": port}}}],
    }})
}

/// Sidecars send what is for the server outside to the gateway, and the gateway sends it on.
fn by_way_of_gateway(namespace: &str, external: &str, from_gateway: &Value) -> Value {
    let to_gateway = json!({
        "match": [{"gateways": ["mesh"], "port": EXTERNAL_PORT, "sniHosts": [external]}],
        "route": [{"destination": {
            "host": host(GATEWAY, namespace),
            "subset": SUBSET,
            "port": {"number": GATEWAY_PORT},
        }}],
    });
    let mut spec = json!({"hosts": [external], "gateways": ["mesh", GATEWAY], "tls": [to_gateway]});
    if let Some(route) = from_gateway.get("tls") {
        spec["tls"].as_array_mut().expect("it was just made").push(route.clone());
    }
    if let Some(route) = from_gateway.get("tcp") {
        spec["tcp"] = json!([route]);
    }
    object(API, "VirtualService", (namespace, "external"), &spec)
}
