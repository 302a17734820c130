//! What the static configuration of one proxy depends on, and the names that follow from its position.

use super::credentials::CredentialFiles;
use super::hop::{Hop, Layer, Peer};
use crate::names::{INBOUND_PORT, OUTBOUND_PORT};
use crate::proof::evidence::Evidence;
use experiment::Protocol;
use experiment::environment::AccessLog;
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
