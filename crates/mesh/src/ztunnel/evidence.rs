//! Counters of ztunnels that prove the path of a call in an ambient mesh. A ztunnel serves all pods of its
//! node; its counters identify the two workloads of a call by their names and namespaces.

use super::metrics::{Peer, Side, Stream};
use crate::istio::objects::waypoint;
use crate::proof::{
    Accepts, Count, Demand, Evidence, ProtocolCounters, RequestByteCounters, Seen, SideCounters,
};
use experiment::Protocol;
use results::HopProtocol;

/// A call from or to a member of the mesh.
#[derive(Clone, Copy, Debug)]
pub struct AmbientCall<'a> {
    pub protocol: Protocol,
    pub from: Peer<'a>,
    pub to: Peer<'a>,
    /// True for the caller, and for the callee, if it is a member: a ztunnel serves that end.
    pub in_mesh: [bool; 2],
    /// Only between members.
    pub through_waypoint: bool,
    /// Claimed of the callee's ztunnel.
    pub accepts: Accepts,
    /// True if the ztunnels also carry other pods, which may use plaintext.
    pub is_shared_with_others: bool,
    /// True if the ztunnels also carry calls of the same deployment from or to workloads outside the mesh.
    pub is_beside_plaintext: bool,
}

impl AmbientCall<'_> {
    /// Evidence at the caller's ztunnel and at the callee's; absent at an end outside the mesh.
    pub fn evidence(&self) -> (Option<Evidence>, Option<Evidence>) {
        let Self { from, to, in_mesh, accepts, .. } = *self;
        if in_mesh == [true, true] {
            let (source, destination) = self.between_members();
            return (Some(source), Some(destination));
        }
        let plaintext = |side| self.plaintext(Stream { side, from, to });
        let source = in_mesh[0].then(|| plaintext(Side::Source));
        let destination = Evidence { accepts: Some(accepts), ..plaintext(Side::Destination) };
        (source, in_mesh[1].then_some(destination))
    }

    /// A ztunnel passes a connection with an end outside the mesh on as it is: neither HBONE nor mutual TLS, and past waypoints.
    fn plaintext(&self, stream: Stream<'_>) -> Evidence {
        Evidence {
            protocols: protocols(stream, &stream.plain_connections(), false),
            demands: vec![Demand {
                counter: stream.mutual_tls_connections(),
                rises: false,
                otherwise: "used mutual TLS with a peer that is outside the mesh",
            }],
            is_shared: self.is_shared_with_others,
            ..Evidence::new(Seen::RequestBytes(RequestByteCounters {
                bytes: stream.plain_request_bytes(),
                response_bytes: stream.plain_response_bytes(),
                connections: stream.plain_connections(),
                added_to: false,
                multiplexed: self.protocol.multiplexes(),
            }))
        }
    }

    /// A waypoint, which is in the callee's namespace, adds headers to requests that it reads.
    fn between_members(&self) -> (Evidence, Evidence) {
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
        let plain = if self.is_shared_with_others || self.is_beside_plaintext {
            stream.plain_connections()
        } else {
            stream.side.plain_connections()
        };
        Evidence {
            protocols: protocols(stream, &stream.mutual_tls_connections(), true),
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

/// Opaque TCP whatever the payload: unchanged at the outer ends, and between the two sides of the mesh over HBONE if both are in it.
fn protocols(stream: Stream<'_>, connections: &str, is_between_members: bool) -> ProtocolCounters {
    let carried = || Count::Connections(connections.to_owned());
    let side = |inner: bool| SideCounters {
        expected: None,
        counters: vec![(HopProtocol::Tcp, carried())],
        hbone: (inner && is_between_members).then(carried),
    };
    let is_source = stream.side == Side::Source;
    ProtocolCounters { received: side(!is_source), forwarded: side(is_source), grpc: None }
}
