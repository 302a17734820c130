//! Listeners: the entry of redirected or addressed traffic into a proxy.
//! As in Istio, `virtualOutbound` (port 15001) receives everything that leaves a pod and hands each
//! connection to the listener of its original destination. `virtualInbound` (port 15006) selects a filter
//! chain by original port and by TLS.

use super::extension::extension;
use super::spec::{Inbound, Position, ProxyConfiguration};
use super::{cluster, connection_manager, domains, tls};
use crate::names::{INBOUND_PORT, OUTBOUND_PORT};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn listeners(proxy: &ProxyConfiguration) -> Vec<Value> {
    match &proxy.position {
        Position::Sidecar { inbound, callees } => {
            let ports: BTreeSet<u16> = callees.iter().map(|callee| callee.address.port()).collect();
            let outbound = (!ports.is_empty()).then(virtual_outbound).into_iter();
            let services = ports.into_iter().map(|port| service_listener(proxy, port));
            let inbound = inbound.iter().map(|inbound| virtual_inbound(proxy, inbound));
            outbound.chain(services).chain(inbound).collect()
        }
        Position::Gateway { port, callee, domains: Some(domains), .. } => {
            vec![domains::listener(proxy, *port, callee, domains)]
        }
        Position::Gateway { port, .. } => vec![gateway(proxy, *port)],
    }
}

pub(super) fn any_address(port: u16) -> Value {
    json!({"socket_address": {"address": "0.0.0.0", "port_value": port}})
}

/// Receives redirected connections and hands them over by original destination. A connection that matches no
/// listener is closed (Istio's `REGISTRY_ONLY`; its default would pass it through, see `bootstrap.rs`).
fn virtual_outbound() -> Value {
    json!({
        "name": "virtualOutbound",
        "address": any_address(OUTBOUND_PORT),
        "use_original_dst": true,
        "traffic_direction": "OUTBOUND",
        "filter_chains": [{"name": "virtualOutbound-blackhole", "filters": [extension(
            "envoy.filters.network.tcp_proxy",
            "filters.network.tcp_proxy.v3.TcpProxy",
            json!({"stat_prefix": cluster::BLACK_HOLE, "cluster": cluster::BLACK_HOLE}),
        )]}],
    })
}

/// Listener of the services' port: it binds no socket and gets its connections from `virtualOutbound`.
fn service_listener(proxy: &ProxyConfiguration, port: u16) -> Value {
    json!({
        "name": format!("0.0.0.0_{port}"),
        "address": any_address(port),
        "bind_to_port": false,
        "traffic_direction": "OUTBOUND",
        "filter_chains": [{"filters": [connection_manager::outbound(proxy, port)]}],
    })
}

/// One filter chain, for the application's port: TLS only (Istio's `STRICT`) or plaintext only. Anything else
/// is closed.
fn virtual_inbound(proxy: &ProxyConfiguration, inbound: &Inbound) -> Value {
    let port = inbound.port;
    let mut chain = json!({
        "name": format!("0.0.0.0_{port}"),
        "filter_chain_match": {
            "destination_port": port,
            "transport_protocol": if proxy.credentials.is_some() { "tls" } else { "raw_buffer" },
        },
        "filters": [connection_manager::inbound(proxy, inbound)],
    });
    if let Some(credentials) = &proxy.credentials {
        chain["transport_socket"] = tls::inbound(credentials, &inbound.callers);
    }
    json!({
        "name": "virtualInbound",
        "address": any_address(INBOUND_PORT),
        "traffic_direction": "INBOUND",
        "listener_filters": [
            extension(
                "envoy.filters.listener.original_dst",
                "filters.listener.original_dst.v3.OriginalDst",
                json!({}),
            ),
            tls_inspector(),
        ],
        // As in Istio, a silent client proceeds to filter chain matching; here no chain matches it.
        "listener_filters_timeout": "0s",
        "continue_on_listener_filters_timeout": true,
        "filter_chains": [chain],
    })
}

pub(super) fn tls_inspector() -> Value {
    let kind = "filters.listener.tls_inspector.v3.TlsInspector";
    extension("envoy.filters.listener.tls_inspector", kind, json!({}))
}

/// Binds an address of its own, since nothing is redirected to a gateway. Plain HTTP, which the clients of
/// this mode use.
fn gateway(proxy: &ProxyConfiguration, port: u16) -> Value {
    let chain = json!({"filters": [connection_manager::gateway(proxy, port)]});
    gateway_listener(port, &[chain])
}

pub(super) fn gateway_listener(port: u16, filter_chains: &[Value]) -> Value {
    json!({
        "name": format!("0.0.0.0_{port}"),
        "address": any_address(port),
        "traffic_direction": "OUTBOUND",
        // Istio's gateways limit the buffer per connection.
        "per_connection_buffer_limit_bytes": 32768,
        "filter_chains": filter_chains,
    })
}
