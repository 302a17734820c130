//! The static configuration of one proxy, shaped like Istio's.
//! An Istio sidecar gets the same listeners, routes and clusters over xDS. Differences are noted beside each
//! setting. In short: upstream Envoy lacks Istio's own telemetry and metadata filters, so they and their cost
//! are absent. Only callees are listed, where a mesh lists all services. Traffic for anything else is
//! rejected, so that nothing bypasses the measurement unnoticed.
//! Pure. Next, read `listener.rs`, then `connection_manager.rs` and `cluster.rs`.

use super::extension::extension;
pub use super::spec::{Callee, DomainHost, Domains, Inbound, Position, ProxyConfiguration};
use super::{cluster, domains, listener, traffic};
use crate::names::{INBOUND_PORT, OUTBOUND_PORT};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub fn configuration(proxy: &ProxyConfiguration) -> Value {
    let mut configuration = json!({
        "node": {"id": proxy.name, "cluster": "meshmeter"},
        "admin": admin(proxy),
        "overload_manager": overload_manager(),
        "stats_config": statistics(&proxy.position),
        "static_resources": {
            "listeners": listener::listeners(proxy),
            "clusters": cluster::clusters(proxy),
        },
    });
    if matches!(proxy.position, Position::Gateway { .. }) {
        let (key, value) = traffic::BOOTSTRAP_FLUSH;
        configuration[key] = json!(value);
    }
    configuration
}

/// A Unix socket in the lab's private directory, mode 0600: no other process in the pod can query or change anything.
fn admin(proxy: &ProxyConfiguration) -> Value {
    json!({"address": {"pipe": {"path": proxy.admin_socket, "mode": 0o600}}})
}

/// Practically unlimited connections, as in Istio; without any limit Envoy warns.
fn overload_manager() -> Value {
    json!({"resource_monitors": [extension(
        "envoy.resource_monitors.global_downstream_max_connections",
        "resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
        json!({"max_active_downstream_connections": "2147483647"}),
    )]})
}

/// Counters of listeners, connection managers and clusters that prove the path, or explain why it is not proven.
const KEPT: &str = "downstream_cx_total downstream_rq_total downstream_rq_http1_total downstream_rq_http2_total \
    downstream_rq_http3_total downstream_rq_2xx downstream_rq_4xx downstream_rq_5xx no_filter_chain_match \
    ssl.handshake ssl.connection_error ssl.fail_verify_error ssl.fail_verify_no_cert ssl.fail_verify_san \
    upstream_cx_total grpc.total upstream_cx_connect_fail upstream_cx_http1_total upstream_cx_http2_total \
    upstream_cx_http3_total upstream_rq_total upstream_rq_retry";

/// Counters of a gateway's listener that prove which TLS its clients spoke.
const OF_CLIENT_TLS: [&str; 4] = ["no_certificate", "session_reused", "versions.TLSv1.2", "versions.TLSv1.3"];

/// Istio excludes nearly all of Envoy's own statistics, since each costs memory and time. Nothing here reads tags.
fn statistics(position: &Position) -> Value {
    let of_clients = domains::statistics(position);
    let hops = position.hops().into_iter();
    let names =
        hops.flat_map(|hop| [format!("http.{}", hop.connection_manager), format!("cluster.{}", hop.cluster)]);
    let listeners = [INBOUND_PORT, OUTBOUND_PORT].map(domains::listener_statistics);
    let names: BTreeSet<String> = names.chain(listeners).chain(of_clients.clone()).collect();
    let exact =
        names.iter().flat_map(|name| KEPT.split(' ').map(move |statistic| format!("{name}.{statistic}")));
    let mut exact: Vec<String> = exact.collect();
    let client_tls = of_clients
        .iter()
        .flat_map(|listener| OF_CLIENT_TLS.map(|statistic| format!("{listener}.ssl.{statistic}")));
    for name in of_gateway(position).into_iter().chain(client_tls).chain(position.filter_counters()) {
        if !exact.contains(&name) {
            exact.push(name);
        }
    }
    let patterns: Vec<Value> = exact.iter().map(|name| json!({"exact": name})).collect();
    json!({"use_all_default_tags": false, "stats_matcher": {"inclusion_list": {"patterns": patterns}}})
}

/// Traffic statistics of a gateway that no proof needs.
fn of_gateway(position: &Position) -> Vec<String> {
    if !matches!(position, Position::Gateway { .. }) {
        return Vec::new();
    }
    let hops = position.hops().into_iter();
    hops.flat_map(|hop| {
        let downstream = traffic::DOWNSTREAM.map(|name| format!("http.{}.{name}", hop.connection_manager));
        let upstream = traffic::UPSTREAM.map(|name| format!("cluster.{}.{name}", hop.cluster));
        downstream.into_iter().chain(upstream)
    })
    .collect()
}
