//! Where an Envoy of the path takes the load and where it sends it on, by the names that its configuration has for both.
//!
//! Which counters prove the path, and which of them the proxy must therefore keep, follows from these names and from what is
//! spoken: said here once, for every mode and whoever configures the proxy.

use crate::names::INBOUND_PORT;
use crate::proof::{Encrypted, Evidence, RequestCounters, Seen, SentOn, Spoken, StreamCounters};
use experiment::Protocol;
use experiment::schema::HopProtocol;

/// What an Envoy does with the load that it takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Handling {
    /// It reads every request.
    Reads {
        /// What it receives them in.
        received: HopProtocol,
        /// What it sends them on in.
        sent_on: HopProtocol,
    },
    /// It carries connections, whatever is in them.
    Carries,
}

impl Handling {
    /// What it does with this in clear text. With a client's own TLS, whatever is in it, it can only carry it.
    #[must_use]
    pub fn of(protocol: Protocol) -> Self {
        let version = match protocol {
            Protocol::Http1 => HopProtocol::Http1,
            Protocol::Http2 => HopProtocol::Http2,
            Protocol::Grpc => HopProtocol::Grpc,
            Protocol::Tcp => return Self::Carries,
        };
        Self::Reads { received: version, sent_on: version }
    }

    /// What it does where it receives in other versions of HTTP, or sends on in others, than the client speaks.
    #[must_use]
    pub fn between(self, received_in: Option<HopProtocol>, sent_on_in: Option<HopProtocol>) -> Self {
        match self {
            Self::Reads { received, sent_on } => Self::Reads {
                received: received_in.unwrap_or(received),
                sent_on: sent_on_in.unwrap_or(sent_on),
            },
            Self::Carries => Self::Carries,
        }
    }
}

/// The proxy that an Envoy speaks mutual TLS with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Peer {
    /// None.
    Nobody,
    /// The one that it sends to.
    Next,
    /// The one that sends to it, at the listener of this name.
    Previous(String),
}

/// Where an Envoy takes the load and where it sends it on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hop {
    /// What it does with it.
    pub handling: Handling,
    /// The prefix of the statistics of the connection manager that reads it, where it is read.
    pub connection_manager: String,
    /// The cluster that it is sent to. What is carried counts under this name, as Istio has it.
    pub cluster: String,
    /// Where mutual TLS counts.
    pub peer: Peer,
}

impl Hop {
    /// That of a proxy which takes what an application, or a client outside, sends to this port, and leads it to a cluster.
    #[must_use]
    pub fn outbound(handling: Handling, port: u16, cluster: String) -> Self {
        Self { handling, connection_manager: format!("outbound_0.0.0.0_{port}"), cluster, peer: Peer::Next }
    }

    /// That of a proxy beside an application that listens at this port.
    #[must_use]
    pub fn inbound(handling: Handling, port: u16) -> Self {
        Self {
            handling,
            connection_manager: format!("inbound_0.0.0.0_{port}"),
            cluster: format!("inbound|{port}||"),
            peer: Peer::Previous(format!("0.0.0.0_{INBOUND_PORT}")),
        }
    }

    /// Which of the proxy's counters tell of the path; `tls_expected` says whether mutual TLS with its peer is claimed.
    #[must_use]
    pub fn evidence(&self, tls_expected: bool) -> Evidence {
        let Self { handling, connection_manager, cluster, peer } = self;
        let seen = match handling {
            Handling::Reads { .. } => Seen::Requests(RequestCounters {
                requests: format!("http.{connection_manager}.downstream_rq_total"),
                connections: format!("http.{connection_manager}.downstream_cx_total"),
                retries: format!("cluster.{cluster}.upstream_rq_retry"),
                traced: format!("http.{connection_manager}.tracing.random_sampling"),
                given_up: [
                    format!("cluster.{cluster}.upstream_rq_timeout"),
                    // Istio sets a route's time for the whole stream too.
                    format!("http.{connection_manager}.downstream_rq_max_duration_reached"),
                ],
            }),
            Handling::Carries => Seen::Streams(StreamCounters::of_tcp_proxy(cluster)),
        };
        let spoken = match *handling {
            Handling::Reads { received, sent_on } => {
                Spoken::reading(connection_manager, cluster, received, sent_on)
            }
            Handling::Carries => Spoken::carrying(cluster),
        };
        let sent_on = Some(SentOn::through(connection_manager, cluster));
        let evidence = Evidence { sent_on, spoken, ..Evidence::of(seen) };
        match peer {
            Peer::Nobody => evidence,
            Peer::Next => Evidence {
                handshakes: Some(format!("cluster.{cluster}.ssl.handshake")),
                tls_expected,
                encrypted: Some(Encrypted::SentOn),
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

    /// Prefixes of all these counters: a proxy that is told by Istio which ones to keep leaves most others out.
    #[must_use]
    pub fn statistics(&self) -> Vec<String> {
        let load = match self.handling {
            Handling::Reads { .. } => format!("http.{}", self.connection_manager),
            Handling::Carries => format!("tcp.{}", self.cluster),
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

    /// What a proxy does not keep reads as zero, and would prove that nothing passed.
    #[test]
    fn every_counter_of_the_evidence_is_kept() {
        for handling in [Handling::of(Protocol::Http1), Handling::Carries] {
            for hop in [
                Hop::outbound(handling, 8080, "outbound|8080||server.mesh-1.svc.cluster.local".to_owned()),
                Hop::inbound(handling, 8080),
            ] {
                let evidence = hop.evidence(true);
                let mut counters: Vec<String> = match evidence.seen {
                    Seen::Requests(counters) => {
                        let RequestCounters { requests, connections, retries, traced, given_up } = counters;
                        [requests, connections, retries, traced].into_iter().chain(given_up).collect()
                    }
                    Seen::Streams(counters) => {
                        vec![counters.connections, counters.received_bytes, counters.sent_bytes]
                    }
                    seen => panic!("an Envoy sees {seen:?}"),
                };
                counters.extend(evidence.handshakes.into_iter().chain(evidence.refused));
                counters.extend(evidence.spoken.counters().map(ToOwned::to_owned));
                let sent_on = evidence.sent_on.expect("an Envoy counts what it sends on");
                counters.extend([sent_on.requests, sent_on.connections, sent_on.failed_connections]);
                assert!(counters.len() >= 7);
                for counter in counters {
                    assert!(hop.statistics().iter().any(|prefix| counter.starts_with(prefix)), "{counter}");
                }
            }
        }
    }
}
