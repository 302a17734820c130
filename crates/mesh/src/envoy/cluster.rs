//! Clusters: the upstreams of a proxy and the TLS that it uses to them.

use super::extension::typed;
use super::spec::{Callee, Position, ProxyConfiguration};
use super::tls;
use crate::filters::{FilterService, GatewayFilters};
use serde_json::{Value, json};
use std::net::SocketAddrV4;

/// The cluster without endpoints: connections routed to it are closed.
pub(super) const BLACK_HOLE: &str = "BlackHoleCluster";
/// The source address of connections from Istio's sidecars to their own application, which lets the redirect
/// recognize them.
const INBOUND_SOURCE: &str = "127.0.0.6";
/// Istio's circuit breaker thresholds: practically unlimited (`getDefaultCircuitBreakerThresholds`).
const UNLIMITED: u32 = u32::MAX;

pub(super) fn clusters(proxy: &ProxyConfiguration) -> Vec<Value> {
    let mut clusters: Vec<Value> =
        proxy.position.callees().iter().map(|callee| service_cluster(proxy, callee)).collect();
    let filters = proxy.position.filters().into_iter().flat_map(GatewayFilters::endpoints);
    clusters.extend(filters.map(|(service, endpoint)| filter_cluster(proxy, service, endpoint)));
    if let Position::Sidecar { inbound, callees } = &proxy.position {
        clusters.extend((!callees.is_empty()).then(black_hole));
        clusters.extend(inbound.as_ref().map(|inbound| application_cluster(proxy, inbound.port)));
    }
    clusters
}

fn black_hole() -> Value {
    json!({"name": BLACK_HOLE, "type": "STATIC", "connect_timeout": "10s"})
}

/// The service's endpoints. Istio sends them over EDS; here they are in the file.
fn service_cluster(proxy: &ProxyConfiguration, callee: &Callee) -> Value {
    let name = callee.cluster_name();
    // Exactly the protocol declared for the service's port, as is Istio's default (`h2UpgradePolicy:
    // DO_NOT_UPGRADE`).
    let mut cluster = static_cluster(proxy, &name, callee.protocol.multiplexes(), &callee.endpoints);
    if let (Some(credentials), Some(identity)) = (&proxy.credentials, &callee.identity) {
        cluster["transport_socket"] = tls::outbound(credentials, callee, identity);
    }
    cluster
}

/// The service behind a filter, in plaintext.
fn filter_cluster(proxy: &ProxyConfiguration, service: FilterService, endpoint: SocketAddrV4) -> Value {
    static_cluster(proxy, &service.cluster(), service.speaks_grpc, &[endpoint])
}

fn static_cluster(
    proxy: &ProxyConfiguration,
    name: &str,
    is_http2: bool,
    endpoints: &[SocketAddrV4],
) -> Value {
    let address = |endpoint: &SocketAddrV4| json!({"endpoint": {"address": {"socket_address": {"address": endpoint.ip(), "port_value": endpoint.port()}}}});
    let endpoints: Vec<Value> = endpoints.iter().map(address).collect();
    let options = if is_http2 { "http2_protocol_options" } else { "http_protocol_options" };
    let mut cluster = common(name, json!({"explicit_http_config": {options: {}}}));
    cluster["type"] = json!("STATIC");
    cluster["lb_policy"] = json!("LEAST_REQUEST");
    cluster["load_assignment"] = json!({
        "cluster_name": name,
        "endpoints": [{"lb_endpoints": endpoints}],
    });
    if let Some(mark) = proxy.socket_mark {
        cluster["upstream_bind_config"] = json!({"socket_options": mark_option(mark)});
    }
    cluster
}

/// The application beside a server's sidecar: the connection's original destination, as in Istio.
fn application_cluster(proxy: &ProxyConfiguration, port: u16) -> Value {
    // The application gets the protocol that the client's side used.
    let protocol = json!({"use_downstream_protocol_config": {"http_protocol_options": {}, "http2_protocol_options": {}}});
    let mut cluster = common(&format!("inbound|{port}||"), protocol);
    cluster["type"] = json!("ORIGINAL_DST");
    cluster["lb_policy"] = json!("CLUSTER_PROVIDED");
    cluster["cleanup_interval"] = json!("60s");
    let mut bind = json!({"source_address": {"address": INBOUND_SOURCE, "port_value": 0}});
    if let Some(mark) = proxy.socket_mark {
        bind["socket_options"] = mark_option(mark);
    }
    cluster["upstream_bind_config"] = bind;
    cluster
}

fn common(name: &str, protocol: Value) -> Value {
    let options = typed("upstreams.http.v3.HttpProtocolOptions", protocol);
    json!({
        "name": name,
        "connect_timeout": "10s",
        "circuit_breakers": {"thresholds": [{
            "max_connections": UNLIMITED,
            "max_pending_requests": UNLIMITED,
            "max_requests": UNLIMITED,
            "max_retries": UNLIMITED,
            "track_remaining": true,
        }]},
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
    })
}

/// Linux's `SOL_SOCKET` and `SO_MARK`: Envoy's configuration takes their numeric values.
const SOL_SOCKET: u32 = 1;
const SO_MARK: u32 = 36;

fn mark_option(mark: u32) -> Value {
    json!([{
        "description": "distinguishes the proxy's traffic from the application's",
        "level": SOL_SOCKET, "name": SO_MARK, "int_value": mark, "state": "STATE_PREBIND",
    }])
}
