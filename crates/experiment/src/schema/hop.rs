//! What neighbours on a path spoke with each other, as a trial shows it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One hop of a path: a proxy and its neighbour, another proxy or whoever stands at an end.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct HopProof {
    /// Who sends: `client`, or a component.
    pub from: String,
    /// Who receives: a component, or `server`.
    pub to: String,
    /// What they spoke, each once, by the counters of those of them that are proxies; empty where these do not tell.
    pub spoken: Vec<HopProtocol>,
    /// What the experiment asks of the hop; absent where it asks nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<HopProtocol>,
    /// They spoke it inside a tunnel of HBONE (HTTP/2's `CONNECT` over mutual TLS), as ztunnels and waypoints do.
    #[serde(default)]
    pub by_hbone: bool,
}

impl HopProof {
    /// What was spoken, as people write it; says so where that cannot be told.
    #[must_use]
    pub fn words(&self) -> String {
        let spoken: Vec<&str> = self.spoken.iter().map(|protocol| protocol.words()).collect();
        match (spoken.is_empty(), self.by_hbone) {
            (true, false) => "a protocol that no counter tells".to_owned(),
            (true, true) => "HBONE".to_owned(),
            (false, false) => spoken.join(" and "),
            (false, true) => format!("{} inside HBONE", spoken.join(" and ")),
        }
    }

    /// The hops of several trials on the same path, each with what it spoke in any of them.
    pub fn of_all<'a>(paths: impl IntoIterator<Item = &'a [Self]>) -> Vec<Self> {
        let mut hops: Vec<Self> = Vec::new();
        for path in paths {
            if hops.is_empty() {
                hops = path.to_vec();
            }
            for (hop, other) in hops.iter_mut().zip(path) {
                hop.add(other);
            }
        }
        hops
    }

    /// Adds what was seen of the same hop elsewhere.
    pub fn add(&mut self, other: &Self) {
        for protocol in &other.spoken {
            if !self.spoken.contains(protocol) {
                self.spoken.push(*protocol);
            }
        }
        self.by_hbone |= other.by_hbone;
    }
}

/// What is spoken on a hop.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum HopProtocol {
    /// HTTP/1.1 (or 1.0), read by a proxy.
    #[serde(rename = "http/1.1")]
    Http1,
    /// HTTP/2, read by a proxy.
    #[serde(rename = "http/2")]
    Http2,
    /// gRPC, which is HTTP/2 with its own headers, read by a proxy that knows these.
    #[serde(rename = "grpc")]
    Grpc,
    /// HTTP/3, read by a proxy.
    #[serde(rename = "http/3")]
    Http3,
    /// Bytes that no proxy on the hop reads: raw TCP, a client's own TLS, whatever a ztunnel carries.
    #[serde(rename = "tcp")]
    Tcp,
}

impl HopProtocol {
    /// As people write it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Grpc => "gRPC",
            Self::Http3 => "HTTP/3",
            Self::Tcp => "unread bytes",
        }
    }

    /// Whether this is what the other asks for. gRPC and what else HTTP/2 carries are alike on the wire.
    #[must_use]
    pub fn is_as_asked(self, asked: Self) -> bool {
        let on_the_wire = |protocol| if protocol == Self::Grpc { Self::Http2 } else { protocol };
        on_the_wire(self) == on_the_wire(asked)
    }
}

impl fmt::Display for HopProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}
