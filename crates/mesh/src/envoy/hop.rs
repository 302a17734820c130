//! Where an Envoy receives the load and where it forwards it, by the names in its configuration. For every
//! mode, these names and the protocols determine which counters prove the path, and hence which ones the
//! proxy must keep.

use super::traffic::Traffic;
use crate::names::{HBONE_PORT, INBOUND_PORT};
use crate::proof::counters::{
    Count, Encrypted, Forwarded, ProtocolCounters, RequestCounters, StreamCounters,
};
use crate::proof::evidence::{Evidence, Seen};
use experiment::Protocol;
use results::HopProtocol;
use std::collections::BTreeSet;

/// The cluster by which a waypoint reaches ztunnels, whatever the payload.
const WAYPOINT_TUNNEL_CLUSTER: &str = "connect_originate";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Layer {
    L7 {
        received: HopProtocol,
        forwarded: HopProtocol,
    },
    /// Carries connections without reading what is in them.
    L4,
}

impl Layer {
    /// The layer for cleartext of this protocol. A client's own TLS can only be carried.
    pub fn for_protocol(protocol: Protocol) -> Self {
        let version = match protocol {
            Protocol::Http1 => HopProtocol::Http1,
            Protocol::Http2 => HopProtocol::Http2,
            Protocol::Grpc => HopProtocol::Grpc,
            Protocol::Tcp => return Self::L4,
        };
        Self::L7 { received: version, forwarded: version }
    }

    /// The same layer, with other HTTP versions received or forwarded than the client's.
    pub fn between(self, received_in: Option<HopProtocol>, forwarded_in: Option<HopProtocol>) -> Self {
        match self {
            Self::L7 { received, forwarded } => Self::L7 {
                received: received_in.unwrap_or(received),
                forwarded: forwarded_in.unwrap_or(forwarded),
            },
            Self::L4 => Self::L4,
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Peer {
    Nobody,
    Next,
    Previous(String),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hop {
    pub layer: Layer,
    pub connection_manager: String,
    /// Cluster that the load is forwarded to. Opaque TCP connections are counted under this name, as in Istio.
    pub cluster: String,
    pub peer: Peer,
}

impl Hop {
    /// A proxy that receives what an application, or an external client, sends to this port.
    pub fn outbound(layer: Layer, port: u16, cluster: String) -> Self {
        Self { layer, connection_manager: format!("outbound_0.0.0.0_{port}"), cluster, peer: Peer::Next }
    }

    pub fn inbound(layer: Layer, port: u16) -> Self {
        Self {
            layer,
            connection_manager: format!("inbound_0.0.0.0_{port}"),
            cluster: format!("inbound|{port}||"),
            peer: Peer::Previous(format!("0.0.0.0_{INBOUND_PORT}")),
        }
    }

    /// A waypoint, for a Service behind it. Its cluster and its filter chain have the same name. Only
    /// connections from ztunnels count as TLS.
    pub fn at_waypoint(layer: Layer, port: u16, host: &str) -> Self {
        let read_as = match layer {
            Layer::L7 { .. } => "http",
            Layer::L4 => "tcp",
        };
        Self {
            cluster: format!("inbound-vip|{port}|{read_as}|{host}"),
            peer: Peer::Previous(format!("0.0.0.0_{HBONE_PORT}")),
            ..Self::inbound(layer, port)
        }
    }

    /// Counters of a waypoint. One connection from a ztunnel carries many client connections.
    pub fn waypoint_evidence(&self) -> Evidence {
        let mut evidence = Evidence { encrypted: None, ..self.evidence(true) };
        let connections = format!("cluster.{WAYPOINT_TUNNEL_CLUSTER}.upstream_cx_http2_total");
        evidence.protocols.forwarded.hbone = Some(Count::Connections(connections));
        evidence
    }

    /// Statistics prefixes of a waypoint that serves these hops, including those of its connections to ztunnels.
    pub fn waypoint_statistics(hops: impl IntoIterator<Item = Self>) -> Vec<String> {
        let tunnel = format!("cluster.{WAYPOINT_TUNNEL_CLUSTER}");
        Self::all_statistics(hops, [tunnel])
    }

    /// Statistics prefixes of a proxy with these hops, and others, without duplicates.
    pub fn all_statistics(
        hops: impl IntoIterator<Item = Self>,
        others: impl IntoIterator<Item = String>,
    ) -> Vec<String> {
        let own = hops.into_iter().flat_map(|hop| hop.statistics());
        let all: BTreeSet<String> = own.chain(others).collect();
        all.into_iter().collect()
    }

    /// Counters that show the path. `tls_expected`: whether mutual TLS with the peer is claimed.
    pub fn evidence(&self, tls_expected: bool) -> Evidence {
        let Self { layer, connection_manager, cluster, peer } = self;
        let seen = match layer {
            Layer::L7 { .. } => Seen::Requests(RequestCounters {
                requests: format!("http.{connection_manager}.downstream_rq_total"),
                connections: format!("http.{connection_manager}.downstream_cx_total"),
                retries: format!("cluster.{cluster}.upstream_rq_retry"),
                traced: format!("http.{connection_manager}.tracing.random_sampling"),
                given_up: [
                    format!("cluster.{cluster}.upstream_rq_timeout"),
                    // Istio applies a route's timeout to the whole stream too.
                    format!("http.{connection_manager}.downstream_rq_max_duration_reached"),
                ],
            }),
            Layer::L4 => Seen::Streams(StreamCounters::for_tcp_proxy(cluster)),
        };
        let protocols = match *layer {
            Layer::L7 { received, forwarded } => {
                ProtocolCounters::l7(connection_manager, cluster, received, forwarded)
            }
            Layer::L4 => ProtocolCounters::l4(cluster),
        };
        let forwarded = Some(Forwarded::through(connection_manager, cluster));
        let traffic = Traffic::of_hop(self);
        let evidence = Evidence { forwarded, protocols, traffic, ..Evidence::new(seen) };
        match peer {
            Peer::Nobody => evidence,
            Peer::Next => Evidence {
                handshakes: Some(format!("cluster.{cluster}.ssl.handshake")),
                tls_expected,
                encrypted: Some(Encrypted::Forwarded),
                ..evidence
            },
            Peer::Previous(listener) => Evidence {
                handshakes: Some(format!("listener.{listener}.ssl.handshake")),
                tls_expected,
                refused: Some(format!("listener.{listener}.no_filter_chain_match")),
                encrypted: Some(Encrypted::Received),
                ..evidence
            },
        }
    }

    /// Prefixes of all these counters: Istio's proxies keep only the statistics that they are configured to keep.
    pub fn statistics(&self) -> Vec<String> {
        let load = match self.layer {
            Layer::L7 { .. } => format!("http.{}", self.connection_manager),
            Layer::L4 => format!("tcp.{}", self.cluster),
        };
        let mut prefixes = vec![load, format!("cluster.{}", self.cluster)];
        if let Peer::Previous(listener) = &self.peer {
            prefixes.push(format!("listener.{listener}"));
        }
        prefixes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter that the proxy does not keep reads as zero, and would prove that nothing passed.
    #[test]
    fn every_counter_of_evidence_is_kept() {
        for layer in [Layer::for_protocol(Protocol::Http1), Layer::L4] {
            for hop in [
                Hop::outbound(layer, 8080, "outbound|8080||server.mesh-1.svc.cluster.local".to_owned()),
                Hop::inbound(layer, 8080),
            ] {
                let evidence = hop.evidence(true);
                // A proxy that reads no requests has no failed ones either.
                let is_kept = |counter: &&str| layer != Layer::L4 || !counter.starts_with("http.");
                let counters: Vec<&str> = evidence.counters().filter(is_kept).collect();
                assert!(counters.len() >= 10);
                for counter in counters {
                    assert!(hop.statistics().iter().any(|prefix| counter.starts_with(prefix)), "{counter}");
                }
            }
        }
    }
}
