//! Counters of a proxy that prove its path. Those of an Envoy follow from its [`crate::envoy::hop::Hop`].

use super::counters::{
    Count, Encrypted, Forwarded, ProtocolCounters, RequestByteCounters, RequestCounters, StreamCounters,
};
use crate::envoy::traffic::Traffic;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Evidence {
    pub seen: Seen,
    pub handshakes: Option<String>,
    pub tls_expected: bool,
    /// Absent if nothing is claimed about the application's port.
    pub accepts: Option<Accepts>,
    /// Connections that matched no filter chain; absent if there is no such listener.
    pub refused: Option<String>,
    /// Absent if another proxy counts it.
    pub forwarded: Option<Forwarded>,
    /// Absent if connections may belong to others.
    pub encrypted: Option<Encrypted>,
    pub protocols: ProtocolCounters,
    /// Further counters of an Envoy that reads requests; absent for other proxies.
    pub traffic: Option<Traffic>,
    pub demands: Vec<Demand>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accepts {
    pub port: u16,
    pub plaintext: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Seen {
    Requests(RequestCounters),
    RequestBytes(RequestByteCounters),
    Streams(StreamCounters),
    /// The path bypasses the proxy: these counters of connections must not increase.
    Nothing(Vec<String>),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Demand {
    pub counter: String,
    pub rises: bool,
    /// Follows the proxy's name in the reason.
    pub otherwise: &'static str,
}

impl Evidence {
    pub fn new(seen: Seen) -> Self {
        Self {
            seen,
            handshakes: None,
            tls_expected: false,
            accepts: None,
            refused: None,
            forwarded: None,
            encrypted: None,
            protocols: ProtocolCounters::default(),
            traffic: None,
            demands: Vec::new(),
        }
    }

    /// True if it proves nothing without the service's own counters.
    pub fn needs_service(&self) -> bool {
        matches!(self.seen, Seen::Streams(_) | Seen::Nothing(_))
    }

    /// Counters of connections that may predate a trial: proxies that read requests keep connections open
    /// between trials. They count from when the proxy begins to serve this deployment.
    pub fn pooled_connections(&self) -> impl Iterator<Item = &str> {
        let requests = match &self.seen {
            Seen::Requests(counters) => Some(counters),
            _ => None,
        };
        let forwarded = self.forwarded.as_ref().filter(|_| requests.is_some());
        let handshakes = self.handshakes.as_deref().filter(|_| requests.is_some());
        let forwarded = forwarded
            .into_iter()
            .flat_map(|forwarded| [forwarded.connections.as_str(), &forwarded.failed_connections]);
        requests.map(|counters| counters.connections.as_str()).into_iter().chain(handshakes).chain(forwarded)
    }

    /// Counters of the load, in a fixed order per kind of evidence. The first one counts traffic. Absent: not
    /// counted.
    pub(super) fn load_counters(&self) -> Vec<Option<&str>> {
        let mut names: Vec<Option<&str>> = match &self.seen {
            Seen::Requests(RequestCounters { requests, connections, retries, traced, given_up }) => {
                [requests, connections, retries, traced, &given_up[0], &given_up[1]]
                    .map(|name| Some(name.as_str()))
                    .to_vec()
            }
            Seen::RequestBytes(RequestByteCounters { bytes, response_bytes, connections, .. }) => {
                [bytes, response_bytes, connections].map(|name| Some(name.as_str())).to_vec()
            }
            Seen::Streams(StreamCounters { connections, received_bytes, sent_bytes }) => {
                [connections, received_bytes, sent_bytes].map(|name| Some(name.as_str())).to_vec()
            }
            Seen::Nothing(counters) => counters.iter().map(|name| Some(name.as_str())).collect(),
        };
        names.extend([self.handshakes.as_deref(), self.refused.as_deref()]);
        if let Some(Forwarded { requests, connections, failed_connections, errors }) = &self.forwarded {
            let forwarded = [requests, connections, failed_connections, &errors[0], &errors[1]];
            names.extend(forwarded.map(|name| Some(name.as_str())));
        }
        names
    }

    /// All counters that it names.
    pub fn counters(&self) -> impl Iterator<Item = &str> {
        let ProtocolCounters { received, forwarded, grpc } = &self.protocols;
        let sides = [received, forwarded].into_iter();
        let counts = sides.flat_map(|side| side.counters.iter().map(|(_, count)| count).chain(&side.hbone));
        let of_protocols = counts.map(|count| {
            let (Count::Requests(name) | Count::Connections(name)) = count;
            name.as_str()
        });
        let of_grpc = grpc.iter().flat_map(|grpc| [grpc.requests.as_str(), &grpc.of_http2]);
        let demanded = self.demands.iter().map(|demand| demand.counter.as_str());
        self.load_counters().into_iter().flatten().chain(of_protocols).chain(of_grpc).chain(demanded)
    }
}
