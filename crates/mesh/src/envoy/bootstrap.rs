//! The configuration file of one proxy, shaped as Istio shapes it.
//!
//! A sidecar that Istio configures gets this over xDS; here the same listeners, routes and clusters are in a file, so that
//! there is nothing but the proxy to measure. What differs from Istio, and why, stands beside each setting. In short:
//! Istio's own telemetry and metadata filters are not in upstream Envoy, so they and their cost are absent; there is one
//! service, where a mesh lists all; traffic for anything else is refused rather than let through, so that nothing
//! goes past the measurement unnoticed.
//!
//! Pure: [`configuration`] gives a value, the caller writes it. Listeners are in `listener.rs`, the HTTP connection
//! manager in `connection_manager.rs`, upstream clusters and TLS in `cluster.rs`.

use super::credentials::CredentialFiles;
use super::hop::{Hop, Layer, Peer};
use super::{cluster, listener};
use crate::names::{INBOUND_PORT, OUTBOUND_PORT};
use crate::proof::Evidence;
use experiment::Protocol;
use experiment::environment::AccessLog;
use serde_json::{Value, json};
use std::net::SocketAddrV4;
use std::path::PathBuf;

/// Everything that the configuration of one proxy depends on.
#[derive(Clone, Debug)]
pub struct ProxyConfiguration {
    /// The component's name, such as `client-proxy`.
    pub name: String,
    /// Where on the path it stands.
    pub position: Position,
    /// What it carries.
    pub protocol: Protocol,
    /// Mutual TLS with the peer proxy; absent: plain text. Ignored by a gateway, which has no peer.
    pub mutual_tls: Option<MutualTls>,
    /// What it writes of each request, to its standard output.
    pub access_log: AccessLog,
    /// Mark its sockets with this (`SO_MARK`), where the redirect tells its traffic by a mark.
    pub socket_mark: Option<u32>,
    /// Its admin interface: a socket that only its own user (and root) may open.
    pub admin_socket: PathBuf,
}

/// Where on the path a proxy stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Position {
    /// In the client's pod: traffic to `service` is redirected to it.
    ClientSidecar {
        /// Address of the server's pod and its port.
        service: SocketAddrV4,
    },
    /// In the server's pod: traffic to this port of the pod is redirected to it.
    ServerSidecar {
        /// The application's port.
        port: u16,
    },
    /// In a pod of its own, addressed by clients.
    Gateway {
        /// The port that it listens on.
        port: u16,
        /// Address of the server's pod and its port.
        service: SocketAddrV4,
    },
}

/// What a proxy needs for mutual TLS.
#[derive(Clone, Debug)]
pub struct MutualTls {
    /// Its own credentials.
    pub credentials: CredentialFiles,
    /// The SPIFFE identity that the peer must show.
    pub peer_identity: String,
}

impl Position {
    /// The prefix of the statistics of the connection manager that requests pass.
    #[must_use]
    pub fn statistics_prefix(self) -> String {
        match self {
            Self::ClientSidecar { service } => format!("outbound_0.0.0.0_{}", service.port()),
            Self::ServerSidecar { port } => format!("inbound_0.0.0.0_{port}"),
            Self::Gateway { port, .. } => format!("gateway_0.0.0.0_{port}"),
        }
    }

    /// Which of its counters tell of the path that carries this; `tls_expected` says whether mutual TLS with its peer is claimed.
    #[must_use]
    pub fn evidence(self, protocol: Protocol, tls_expected: bool) -> Evidence {
        self.hop(protocol).evidence(tls_expected)
    }

    fn hop(self, protocol: Protocol) -> Hop {
        let peer = match self {
            Self::ClientSidecar { .. } => Peer::Next,
            Self::ServerSidecar { .. } => Peer::Previous(format!("0.0.0.0_{INBOUND_PORT}")),
            Self::Gateway { .. } => Peer::Nobody,
        };
        Hop {
            layer: Layer::for_protocol(protocol),
            connection_manager: self.statistics_prefix(),
            cluster: self.cluster_name(),
            peer,
        }
    }

    /// The port that the proxy listens on.
    #[must_use]
    pub fn listening_port(self) -> u16 {
        match self {
            Self::ClientSidecar { .. } => OUTBOUND_PORT,
            Self::ServerSidecar { .. } => INBOUND_PORT,
            Self::Gateway { port, .. } => port,
        }
    }

    /// The name of the cluster that requests leave through, as Istio composes it.
    #[must_use]
    pub fn cluster_name(self) -> String {
        match self {
            Self::ClientSidecar { service } | Self::Gateway { service, .. } => {
                format!("outbound|{}||{SERVICE_HOST}", service.port())
            }
            Self::ServerSidecar { port } => format!("inbound|{port}||"),
        }
    }
}

/// The name that the service would have in a cluster.
pub(super) const SERVICE_HOST: &str = "server.default.svc.cluster.local";

/// The whole configuration, as Envoy reads it from a JSON file.
#[must_use]
pub fn configuration(proxy: &ProxyConfiguration) -> Value {
    json!({
        "node": {"id": proxy.name, "cluster": "meshmeter"},
        "admin": admin(proxy),
        "overload_manager": overload_manager(),
        "stats_config": statistics(proxy.position),
        "static_resources": {
            "listeners": listener::listeners(proxy),
            "clusters": cluster::clusters(proxy),
        },
    })
}

/// A socket file in the lab's private folder, mode 0600: no other process in the pod can ask or change anything.
fn admin(proxy: &ProxyConfiguration) -> Value {
    json!({"address": {"pipe": {"path": proxy.admin_socket, "mode": 0o600}}})
}

/// As good as no limit on connections, as in Istio; without any Envoy warns.
fn overload_manager() -> Value {
    json!({"resource_monitors": [{
        "name": "envoy.resource_monitors.global_downstream_max_connections",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
            "max_active_downstream_connections": "2147483647",
        },
    }]})
}

/// Istio keeps nearly all of Envoy's own statistics out, since each costs memory and a little time. Here exactly the
/// counters stay that prove the path, and those that explain a path that is not proven. Tags are never asked for.
fn statistics(position: Position) -> Value {
    let suffixes = [
        ".downstream_cx_total",
        ".downstream_rq_total",
        ".downstream_rq_http1_total",
        ".downstream_rq_http2_total",
        ".downstream_rq_http3_total",
        ".downstream_rq_2xx",
        ".downstream_rq_4xx",
        ".downstream_rq_5xx",
        ".no_filter_chain_match",
        ".ssl.handshake",
        ".ssl.connection_error",
        ".ssl.fail_verify_error",
        ".ssl.fail_verify_no_cert",
        ".ssl.fail_verify_san",
        ".upstream_cx_total",
        ".grpc.total",
        ".upstream_cx_connect_fail",
        ".upstream_cx_http1_total",
        ".upstream_cx_http2_total",
        ".upstream_cx_http3_total",
        ".upstream_rq_total",
        ".upstream_rq_retry",
    ];
    let names = [
        format!("http.{}", position.statistics_prefix()),
        format!("cluster.{}", position.cluster_name()),
        format!("listener.0.0.0.0_{INBOUND_PORT}"),
        format!("listener.0.0.0.0_{OUTBOUND_PORT}"),
    ];
    let exact = names.iter().flat_map(|name| suffixes.iter().map(move |suffix| format!("{name}{suffix}")));
    let patterns: Vec<Value> = exact.map(|name| json!({"exact": name})).collect();
    json!({"use_all_default_tags": false, "stats_matcher": {"inclusion_list": {"patterns": patterns}}})
}
