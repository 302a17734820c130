//! Protocols observed between neighbours on a path in a trial.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One hop of a path: between a proxy and its neighbour, which is a proxy or an end of the path.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct HopProof {
    /// Sender: `client`, or a component.
    pub from: String,
    /// Receiver: a component, or `server`.
    pub to: String,
    /// Distinct protocols observed, from the counters of the proxies at the hop; empty if these do not show
    /// it.
    pub spoken: Vec<HopProtocol>,
    /// Protocol that the experiment expects on the hop; absent if it expects none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<HopProtocol>,
    /// True if it is tunneled in HBONE (HTTP/2 `CONNECT` over mutual TLS), as by ztunnels and waypoints.
    #[serde(default)]
    pub by_hbone: bool,
}

impl HopProof {
    /// Display text of the observed protocols; says so if they are unknown.
    #[must_use]
    pub fn describe(&self) -> String {
        let spoken: Vec<&str> = self.spoken.iter().map(|protocol| protocol.describe()).collect();
        match (spoken.is_empty(), self.by_hbone) {
            (true, false) => "an unknown protocol".to_owned(),
            (true, true) => "HBONE".to_owned(),
            (false, false) => spoken.join(" and "),
            (false, true) => format!("{} inside HBONE", spoken.join(" and ")),
        }
    }

    /// Merges the hops of several trials on the same path, each with all protocols observed.
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

    /// Merges observations of the same hop.
    pub fn add(&mut self, other: &Self) {
        for protocol in &other.spoken {
            if !self.spoken.contains(protocol) {
                self.spoken.push(*protocol);
            }
        }
        self.by_hbone |= other.by_hbone;
    }
}

/// Protocol on a hop.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum HopProtocol {
    /// HTTP/1.1 (or 1.0), read by a proxy.
    #[serde(rename = "http/1.1")]
    Http1,
    /// HTTP/2, read by a proxy.
    #[serde(rename = "http/2")]
    Http2,
    /// gRPC: HTTP/2 with gRPC headers, read by a proxy that recognizes them.
    #[serde(rename = "grpc")]
    Grpc,
    /// HTTP/3, read by a proxy.
    #[serde(rename = "http/3")]
    Http3,
    /// Bytes that no proxy on the hop reads: raw TCP, a client's own TLS, any traffic through ztunnel.
    #[serde(rename = "tcp")]
    Tcp,
}

impl HopProtocol {
    /// Display name.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Grpc => "gRPC",
            Self::Http3 => "HTTP/3",
            Self::Tcp => "opaque TCP",
        }
    }

    /// True if this matches the expected protocol. gRPC and other HTTP/2 traffic look alike on the wire.
    #[must_use]
    pub fn is_as_asked(self, asked: Self) -> bool {
        let on_the_wire = |protocol| if protocol == Self::Grpc { Self::Http2 } else { protocol };
        on_the_wire(self) == on_the_wire(asked)
    }
}

impl fmt::Display for HopProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.describe())
    }
}
