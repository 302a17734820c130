//! Counters of a proxy that prove its path. Those of an Envoy follow from its [`crate::envoy::hop::Hop`].

use super::counters::{
    Count, Encrypted, Forwarded, ProtocolCounters, RequestByteCounters, RequestCounters, StreamCounters,
};
use crate::envoy::traffic::Traffic;
use experiment::environment::MutualTls;

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
    /// True if the proxy also carries traffic of others, whose counters say nothing about this path.
    pub is_shared: bool,
}

/// Traffic that a proxy accepts at a port of its application, beside mutual TLS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accepts {
    pub port: u16,
    pub plaintext: bool,
}

impl Accepts {
    pub fn new(port: u16, mtls: MutualTls) -> Self {
        Self { port, plaintext: mtls != MutualTls::Strict }
    }

    /// Contradiction between this and whether a proxy accepts plaintext, which it may not show.
    pub fn contradiction(self, proxy: &str, accepted: Option<bool>) -> Option<String> {
        let manner = match accepted {
            Some(accepted) if accepted == self.plaintext => return None,
            Some(true) => "accepts plaintext, against what `proxy.mtls` says",
            Some(false) => "refuses plaintext, against what `proxy.mtls` says",
            None => "does not show whether plaintext is accepted",
        };
        Some(format!("{proxy} {manner}"))
    }
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

impl Seen {
    /// Counter of its traffic, and of the connections that carry it; absent if nothing is to pass.
    pub(super) fn load(&self) -> Option<(&str, &str)> {
        match self {
            Self::Requests(counters) => Some((&counters.requests, &counters.connections)),
            Self::RequestBytes(counters) => Some((&counters.bytes, &counters.connections)),
            Self::Streams(counters) => Some((&counters.received_bytes, &counters.connections)),
            Self::Nothing(_) => None,
        }
    }
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
            is_shared: false,
        }
    }

    /// True if it proves nothing without the service's own counters.
    pub fn needs_service(&self) -> bool {
        matches!(self.seen, Seen::Streams(_) | Seen::Nothing(_))
    }

    /// Counters of connections that may predate a trial: proxies that read requests keep connections open
    /// between trials. They count from when the proxy begins to serve this deployment.
    pub fn pooled_connections(&self) -> Vec<&String> {
        let Seen::Requests(counters) = &self.seen else { return Vec::new() };
        let forwarded = self.forwarded.iter();
        let forwarded =
            forwarded.flat_map(|forwarded| [&forwarded.connections, &forwarded.failed_connections]);
        [&counters.connections].into_iter().chain(&self.handshakes).chain(forwarded).collect()
    }

    /// Counters of the load, in a fixed order per kind of evidence. The first one counts traffic. Absent: not
    /// counted.
    pub(super) fn load_counters(&self) -> Vec<Option<&String>> {
        let seen = match &self.seen {
            Seen::Requests(RequestCounters { requests, connections, retries, traced, given_up }) => {
                vec![requests, connections, retries, traced, &given_up[0], &given_up[1]]
            }
            Seen::RequestBytes(RequestByteCounters { bytes, response_bytes, connections, .. }) => {
                vec![bytes, response_bytes, connections]
            }
            Seen::Streams(StreamCounters { connections, received_bytes, sent_bytes }) => {
                vec![connections, received_bytes, sent_bytes]
            }
            Seen::Nothing(counters) => counters.iter().collect(),
        };
        let forwarded = self.forwarded.iter().flat_map(|forwarded| {
            let Forwarded { requests, connections, failed_connections, errors } = forwarded;
            [requests, connections, failed_connections, &errors[0], &errors[1]]
        });
        let of_tls = [self.handshakes.as_ref(), self.refused.as_ref()];
        seen.into_iter().map(Some).chain(of_tls).chain(forwarded.map(Some)).collect()
    }

    /// All counters that it names.
    pub fn counters(&self) -> impl Iterator<Item = &str> {
        let ProtocolCounters { received, forwarded, grpc } = &self.protocols;
        let sides = [received, forwarded].into_iter();
        let counts = sides.flat_map(|side| side.counters.iter().map(|(_, count)| count).chain(&side.hbone));
        let of_protocols = counts.map(|(Count::Requests(name) | Count::Connections(name))| name);
        let of_grpc = grpc.iter().flat_map(|grpc| [&grpc.requests, &grpc.of_http2]);
        let demanded = self.demands.iter().map(|demand| &demand.counter);
        let load = self.load_counters().into_iter().flatten();
        load.chain(of_protocols).chain(of_grpc).chain(demanded).map(String::as_str)
    }
}
