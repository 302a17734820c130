//! Counters of ztunnels that prove the path of a call in an ambient mesh. A ztunnel serves all pods of its
//! node; its counters identify the two workloads of a call by their names and namespaces.

use super::metrics::{Peer, Side, Stream};
use crate::istio::objects::waypoint;
use crate::proof::{
    Accepts, Count, Demand, Evidence, ProtocolCounters, RequestByteCounters, Seen, SideCounters,
};
use experiment::Protocol;
use results::HopProtocol;

/// A call between two members of the mesh.
#[derive(Clone, Copy, Debug)]
pub struct AmbientCall<'a> {
    pub protocol: Protocol,
    pub from: Peer<'a>,
    pub to: Peer<'a>,
    pub through_waypoint: bool,
    /// Claimed of the callee's ztunnel.
    pub accepts: Accepts,
    /// True if the ztunnels also carry other pods, which may use plaintext.
    pub is_shared_with_others: bool,
}

impl AmbientCall<'_> {
    /// Evidence at the caller's ztunnel and at the callee's. A waypoint, which is in the callee's namespace,
    /// adds headers to requests that it reads.
    pub fn evidence(&self) -> (Evidence, Evidence) {
        let Self { protocol, from, to, through_waypoint, accepts, .. } = *self;
        let is_added_to = through_waypoint && protocol.is_http();
        let waypoint = (waypoint::NAME, to.1);
        let (first, second) = if through_waypoint { (waypoint, waypoint) } else { (to, from) };
        let source = Stream { side: Side::Source, from, to: first };
        let destination = Stream { side: Side::Destination, from: second, to };
        let callee = Evidence { accepts: Some(accepts), ..self.at(destination, is_added_to) };
        (self.at(source, false), callee)
    }

    fn at(&self, stream: Stream<'_>, added_to: bool) -> Evidence {
        let plain = if self.is_shared_with_others {
            stream.plain_connections()
        } else {
            stream.side.plain_connections()
        };
        Evidence {
            protocols: protocols(stream),
            handshakes: Some(stream.mutual_tls_connections()),
            tls_expected: true,
            demands: vec![Demand {
                counter: plain,
                rises: false,
                otherwise: "passed connections in plaintext, though mutual TLS is claimed",
            }],
            is_shared: self.is_shared_with_others,
            ..Evidence::new(Seen::RequestBytes(RequestByteCounters {
                bytes: stream.request_bytes(),
                response_bytes: stream.response_bytes(),
                connections: stream.mutual_tls_connections(),
                added_to,
                multiplexed: self.protocol.multiplexes(),
            }))
        }
    }
}

/// Opaque TCP whatever the payload: over HBONE between the two sides of the mesh, unchanged at their outer ends.
fn protocols(stream: Stream<'_>) -> ProtocolCounters {
    let carried = || Count::Connections(stream.mutual_tls_connections());
    let side = |hbone: bool| SideCounters {
        expected: None,
        counters: vec![(HopProtocol::Tcp, carried())],
        hbone: hbone.then(carried),
    };
    let is_source = stream.side == Side::Source;
    ProtocolCounters { received: side(!is_source), forwarded: side(is_source), grpc: None }
}
