//! Inputs of one proxy's static configuration, and the names that follow from its position.

use super::credentials::CredentialFiles;
use super::hop::{Hop, Layer, Peer};
use crate::filters::GatewayFilters;
use crate::names::{INBOUND_PORT, OUTBOUND_PORT};
use experiment::Protocol;
use experiment::environment::AccessLog;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct ProxyConfiguration {
    pub name: String,
    pub position: Position,
    /// For mutual TLS with peer proxies; absent: plaintext.
    pub credentials: Option<CredentialFiles>,
    pub access_log: AccessLog,
    /// CPU spent per request beyond the proxy's own.
    pub cpu_time: Duration,
    /// Mark on its sockets (`SO_MARK`), if the redirect recognizes its traffic by a mark.
    pub socket_mark: Option<u32>,
    /// Socket of its admin interface, which only its own user (and root) can open.
    pub admin_socket: PathBuf,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Position {
    /// In a workload's pod: requests of its application to `callees` and requests to the pod are redirected to it.
    Sidecar { inbound: Option<Inbound>, callees: Vec<Callee> },
    Gateway {
        port: u16,
        callee: Callee,
        /// Domains selected by SNI; absent: plain HTTP for any host.
        domains: Option<Domains>,
        filters: GatewayFilters,
    },
}

/// Domains of a gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Domains {
    pub hosts: Vec<DomainHost>,
    /// Number of exact paths per domain; absent: one route for all paths.
    pub paths: Option<usize>,
    /// The path that exact paths are rewritten to.
    pub rewrite: String,
    /// True if clients must present a certificate.
    pub takes_certificates: bool,
    /// TLS 1.2 only.
    pub is_tls12: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DomainHost {
    pub name: String,
    pub credentials: CredentialFiles,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Inbound {
    /// Name of the workload's service.
    pub host: String,
    pub port: u16,
    /// Identities of the calling proxies.
    pub callers: Vec<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Callee {
    /// The host name that the service would have in a cluster.
    pub host: String,
    pub protocol: Protocol,
    /// Address that callers connect to.
    pub address: SocketAddrV4,
    pub endpoints: Vec<SocketAddrV4>,
    /// Identity of its proxies; absent if they have none.
    pub identity: Option<String>,
}

impl Callee {
    /// The cluster of outbound requests to it, named as in Istio.
    pub fn cluster_name(&self) -> String {
        format!("outbound|{}||{}", self.address.port(), self.host)
    }

    /// Hop of a sidecar in a caller's pod.
    pub fn hop(&self) -> Hop {
        let layer = Layer::for_protocol(self.protocol);
        let peer = if self.identity.is_some() { Peer::Next } else { Peer::Nobody };
        Hop { peer, ..Hop::outbound(layer, self.address.port(), self.cluster_name()) }
    }

    /// Hop of a gateway that listens on this port.
    pub fn hop_of_gateway(&self, port: u16) -> Hop {
        Hop { connection_manager: gateway_prefix(port), peer: Peer::Nobody, ..self.hop() }
    }
}

/// Statistics prefix of a gateway's connection manager.
pub(super) fn gateway_prefix(port: u16) -> String {
    format!("gateway_0.0.0.0_{port}")
}

impl Position {
    pub fn listening_ports(&self) -> Vec<u16> {
        match self {
            Self::Sidecar { inbound, callees } => {
                let outbound = (!callees.is_empty()).then_some(OUTBOUND_PORT);
                outbound.into_iter().chain(inbound.as_ref().map(|_| INBOUND_PORT)).collect()
            }
            Self::Gateway { port, .. } => vec![*port],
        }
    }

    pub fn callees(&self) -> &[Callee] {
        match self {
            Self::Sidecar { callees, .. } => callees,
            Self::Gateway { callee, .. } => std::slice::from_ref(callee),
        }
    }

    pub(super) fn filters(&self) -> Option<&GatewayFilters> {
        match self {
            Self::Gateway { filters, .. } => Some(filters),
            Self::Sidecar { .. } => None,
        }
    }

    /// Counters that prove its filters.
    pub(super) fn filter_counters(&self) -> Vec<String> {
        match self {
            Self::Gateway { port, filters, .. } => filters.counters(&gateway_prefix(*port)).collect(),
            Self::Sidecar { .. } => Vec::new(),
        }
    }

    /// Hops to each callee, and the one to its own pod.
    pub(super) fn hops(&self) -> Vec<Hop> {
        match self {
            Self::Sidecar { inbound, callees } => {
                // The HTTP version does not matter: no counter's name depends on it.
                let inbound = inbound.as_ref();
                let inbound =
                    inbound.map(|inbound| Hop::inbound(Layer::for_protocol(Protocol::Http1), inbound.port));
                callees.iter().map(Callee::hop).chain(inbound).collect()
            }
            Self::Gateway { port, callee, .. } => vec![callee.hop_of_gateway(*port)],
        }
    }
}
