//! The counters of a proxy that prove its path. An Envoy's follow from its [`crate::envoy::hop::Hop`].

use super::counted::CountedService;
use super::counters::{
    Encrypted, Forwarded, ProtocolCounters, RequestByteCounters, RequestCounters, StreamCounters,
};
use super::delta::delta;
use experiment::environment::SentLoad;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Evidence {
    pub seen: Seen,
    pub handshakes: Option<String>,
    pub tls_expected: bool,
    /// Absent if nothing is claimed of the application's port.
    pub accepts: Option<Accepts>,
    /// Connections that matched no filter chain; absent without such a listener.
    pub refused: Option<String>,
    /// Absent if another proxy counts it.
    pub forwarded: Option<Forwarded>,
    /// Absent if a connection may be another's.
    pub encrypted: Option<Encrypted>,
    pub protocols: ProtocolCounters,
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
    /// The path leads past the proxy: these counters of connections must not rise.
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
            demands: Vec::new(),
        }
    }

    /// Whether it proves nothing without the service's own count.
    pub fn needs_service(&self) -> bool {
        matches!(self.seen, Seen::Streams(_) | Seen::Nothing(_))
    }

    /// Counters of connections that may be older than a trial: proxies that read requests keep those between them open. They
    /// count since the proxy serves this deployment.
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

    /// Whether the proxy has counted the whole trial: the last requests may be in sockets when the generator ends.
    pub fn has_settled(
        &self,
        before: &BTreeMap<String, u64>,
        after: &BTreeMap<String, u64>,
        sent: &SentLoad,
        service: Option<&CountedService>,
    ) -> bool {
        let rise = |name: &str| delta(before, after, name);
        match &self.seen {
            Seen::Requests(counters) => rise(&counters.requests) >= sent.requests,
            Seen::RequestBytes(counters) => counters.requests(rise, sent) >= sent.requests,
            Seen::Streams(counters) => service.is_none_or(|service| counters.hold(service, &rise)),
            Seen::Nothing(_) => true,
        }
    }
}
