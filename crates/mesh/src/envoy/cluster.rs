//! Clusters: where a proxy sends requests on, and the TLS that it speaks there.

use super::spec::{MutualTls, Position, ProxyConfiguration, SERVICE_HOST};
use serde_json::{Value, json};
use std::net::SocketAddrV4;

/// The cluster without endpoints: what is sent there is closed.
pub(super) const BLACK_HOLE: &str = "BlackHoleCluster";
/// The address from which Istio's sidecars connect to their own application, so that a redirect can tell.
const INBOUND_SOURCE: &str = "127.0.0.6";
/// Istio's circuit breaker: as good as none (`getDefaultCircuitBreakerThresholds`).
const UNLIMITED: u32 = u32::MAX;

pub(super) fn clusters(proxy: &ProxyConfiguration) -> Vec<Value> {
    match proxy.position {
        Position::ClientSidecar { service } => {
            vec![service_cluster(proxy, service, proxy.mutual_tls.as_ref()), black_hole()]
        }
        Position::ServerSidecar { .. } => vec![application_cluster(proxy)],
        Position::Gateway { service, .. } => vec![service_cluster(proxy, service, None)],
    }
}

fn black_hole() -> Value {
    json!({"name": BLACK_HOLE, "type": "STATIC", "connect_timeout": "10s"})
}

/// The service's endpoints. Istio sends them by EDS; here there is one and it stands in the file.
fn service_cluster(proxy: &ProxyConfiguration, service: SocketAddrV4, tls: Option<&MutualTls>) -> Value {
    let name = proxy.position.cluster_name();
    // What the service's port is said to speak, and no more: Istio's default (`h2UpgradePolicy: DO_NOT_UPGRADE`).
    let options =
        if proxy.protocol.multiplexes() { "http2_protocol_options" } else { "http_protocol_options" };
    let mut cluster = common(proxy, &json!({"explicit_http_config": {options: {}}}));
    cluster["type"] = json!("STATIC");
    cluster["lb_policy"] = json!("LEAST_REQUEST");
    cluster["load_assignment"] = json!({
        "cluster_name": name,
        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {
            "address": service.ip(), "port_value": service.port(),
        }}}}]}],
    });
    if let Some(tls) = tls {
        cluster["transport_socket"] = upstream_tls(tls, proxy, service.port());
    }
    if let Some(mark) = proxy.socket_mark {
        cluster["upstream_bind_config"] = json!({"socket_options": mark_option(mark)});
    }
    cluster
}

/// The application beside a server's sidecar: whatever the connection's original destination was, as Istio has it.
fn application_cluster(proxy: &ProxyConfiguration) -> Value {
    // The application gets what the client's side spoke.
    let protocol = json!({"use_downstream_protocol_config": {"http_protocol_options": {}, "http2_protocol_options": {}}});
    let mut cluster = common(proxy, &protocol);
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

fn common(proxy: &ProxyConfiguration, protocol: &Value) -> Value {
    let mut options = protocol.clone();
    options["@type"] = json!("type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions");
    json!({
        "name": proxy.position.cluster_name(),
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

/// `SOL_SOCKET` and `SO_MARK` of Linux, as Envoy's configuration wants them: numbers.
const SOL_SOCKET: u32 = 1;
const SO_MARK: u32 = 36;

fn mark_option(mark: u32) -> Value {
    json!([{
        "description": "tells the proxy's traffic from the application's",
        "level": SOL_SOCKET, "name": SO_MARK, "int_value": mark, "state": "STATE_PREBIND",
    }])
}

fn upstream_tls(tls: &MutualTls, proxy: &ProxyConfiguration, port: u16) -> Value {
    let protocol = if proxy.protocol.multiplexes() { "h2" } else { "istio-http/1.1" };
    json!({"name": "envoy.transport_sockets.tls", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": common_tls(tls, &[protocol]),
        "sni": format!("outbound_.{port}_._.{SERVICE_HOST}"),
    }})
}

/// TLS 1.2 or 1.3 (Envoy alone would stop at 1.2 as a client) with the run's certificates; the peer must show its identity.
pub(super) fn common_tls(tls: &MutualTls, protocols: &[&str]) -> Value {
    json!({
        "alpn_protocols": protocols,
        "tls_params": {"tls_minimum_protocol_version": "TLSv1_2", "tls_maximum_protocol_version": "TLSv1_3"},
        "tls_certificates": [{
            "certificate_chain": {"filename": tls.credentials.certificate},
            "private_key": {"filename": tls.credentials.key},
        }],
        "validation_context": {
            "trusted_ca": {"filename": tls.credentials.authority},
            "match_typed_subject_alt_names": [{
                "san_type": "URI", "matcher": {"exact": tls.peer_identity},
            }],
        },
    })
}
