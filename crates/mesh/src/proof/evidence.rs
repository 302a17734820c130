//! What of a proxy's counters tells of the path, whatever kind of proxy it is. Of an Envoy it follows from its
//! [`crate::envoy::hop::Hop`].

use super::counters::{
    Encrypted, Forwarded, ProtocolCounters, RequestByteCounters, RequestCounters, StreamCounters,
};
use super::delta::delta;
use super::service::CountedService;
use experiment::environment::SentLoad;
use std::collections::BTreeMap;

/// Which counters of a proxy tell of the path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Evidence {
    /// What it sees of the traffic.
    pub seen: Seen,
    /// TLS handshakes with the peer proxy; absent where it has no peer.
    pub handshakes: Option<String>,
    /// Whether mutual TLS with the peer is claimed.
    pub tls_expected: bool,
    /// What it takes for this port of the application; absent where nothing is claimed of that.
    pub accepts: Option<Accepts>,
    /// Connections that it refused since they came as no filter chain wants them; absent where it has no such listener.
    pub refused: Option<String>,
    /// What it sends on; absent where that counts elsewhere.
    pub forwarded: Option<Forwarded>,
    /// Which connections must all be encrypted, where mutual TLS is claimed; absent where one carries others.
    pub encrypted: Option<Encrypted>,
    /// Where it counts what is spoken on both sides of it.
    pub protocols: ProtocolCounters,
    /// What else must show, or must not.
    pub demands: Vec<Demand>,
}

/// What a proxy is to take for a port of the application.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accepts {
    /// The port.
    pub port: u16,
    /// Whether it takes plain text, be it beside mutual TLS or alone.
    pub plaintext: bool,
}

/// What a proxy sees of the traffic on the path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Seen {
    /// Every request.
    Requests(RequestCounters),
    /// The bytes of every request.
    RequestBytes(RequestByteCounters),
    /// Connections with bytes in them.
    Streams(StreamCounters),
    /// Nothing: the path leads past it, and these counters of connections must not rise.
    Nothing(Vec<String>),
}

/// A counter that must rise in a trial, or must not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Demand {
    /// Its name.
    pub counter: String,
    /// Whether it must.
    pub rises: bool,
    /// What it means where it did not keep to that, after the proxy's name.
    pub otherwise: &'static str,
}

impl Evidence {
    /// The evidence of a proxy that sees this of the traffic; of mutual TLS it tells nothing.
    #[must_use]
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

    /// Whether it is worth nothing without the service's own count.
    #[must_use]
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

    /// Whether the proxy has counted all that it will count of a trial: the generator may be gone while its last
    /// requests still lie in sockets.
    #[must_use]
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
