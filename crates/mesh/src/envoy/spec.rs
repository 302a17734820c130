//! What the static configuration of one proxy depends on, and the names that follow from its position.

use super::credentials::CredentialFiles;
use super::hop::{Hop, Layer, Peer};
use crate::names::{INBOUND_PORT, OUTBOUND_PORT};
use crate::proof::evidence::Evidence;
use experiment::Protocol;
use experiment::environment::AccessLog;
use std::net::SocketAddrV4;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct ProxyConfiguration {
    pub name: String,
    pub position: Position,
    pub protocol: Protocol,
    /// Mutual TLS with the peer proxy; absent: plain text. Ignored by a gateway, which has no peer.
    pub mutual_tls: Option<MutualTls>,
    pub access_log: AccessLog,
    /// Mark its sockets with this (`SO_MARK`), where the redirect tells its traffic by a mark.
    pub socket_mark: Option<u32>,
    /// Its admin interface: a socket that only its own user (and root) may open.
    pub admin_socket: PathBuf,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Position {
    /// In the client's pod: traffic to `service` is redirected to it.
    ClientSidecar {
        service: SocketAddrV4,
    },
    /// In the server's pod: traffic to this port of the pod is redirected to it.
    ServerSidecar {
        port: u16,
    },
    Gateway {
        port: u16,
        service: SocketAddrV4,
    },
}

#[derive(Clone, Debug)]
pub struct MutualTls {
    pub credentials: CredentialFiles,
    pub peer_identity: String,
}

impl Position {
    /// Statistics prefix of the connection manager that requests pass.
    pub fn statistics_prefix(self) -> String {
        match self {
            Self::ClientSidecar { service } => format!("outbound_0.0.0.0_{}", service.port()),
            Self::ServerSidecar { port } => format!("inbound_0.0.0.0_{port}"),
            Self::Gateway { port, .. } => format!("gateway_0.0.0.0_{port}"),
        }
    }

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

    pub fn listening_port(self) -> u16 {
        match self {
            Self::ClientSidecar { .. } => OUTBOUND_PORT,
            Self::ServerSidecar { .. } => INBOUND_PORT,
            Self::Gateway { port, .. } => port,
        }
    }

    /// The cluster that requests leave through, named as by Istio.
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
