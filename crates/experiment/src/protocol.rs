//! Protocols between generator, proxies and service.

use crate::keys::words::words;
use crate::topology::script::grpc_method;
use std::fmt;

/// Protocol of the generator and of every hop of the path.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive.
    #[default]
    Http1,
    /// HTTP/2; plaintext by prior knowledge.
    Http2,
    /// Unary gRPC calls.
    Grpc,
    /// Messages over TCP that proxies cannot parse.
    Tcp,
}

words!(Protocol { Http1 = "http/1.1", Http2 = "http/2", Grpc = "grpc", Tcp = "tcp" });

impl Protocol {
    /// URL scheme, as accepted by `meshmeter load`.
    #[must_use]
    pub fn scheme(self, over_tls: bool) -> &'static str {
        match (self, over_tls) {
            (Self::Http1 | Self::Http2, false) => "http",
            (Self::Http1 | Self::Http2, true) => "https",
            (Self::Grpc, false) => "grpc",
            (Self::Grpc, true) => "grpcs",
            (Self::Tcp, false) => "tcp",
            (Self::Tcp, true) => "tls",
        }
    }

    /// Path of requests to an endpoint; for gRPC, its method.
    #[must_use]
    pub fn path(self, endpoint: &str) -> String {
        match self {
            Self::Http1 | Self::Http2 => endpoint.to_owned(),
            Self::Grpc => grpc_method(endpoint),
            Self::Tcp => String::new(),
        }
    }

    /// True if it consists of HTTP requests, which proxies can read.
    #[must_use]
    pub fn is_http(self) -> bool {
        self != Self::Tcp
    }

    /// True if responses have HTTP statuses that say whether a request succeeded. gRPC has its own.
    #[must_use]
    pub fn has_http_statuses(self) -> bool {
        matches!(self, Self::Http1 | Self::Http2)
    }

    /// True if a connection carries several concurrent requests.
    #[must_use]
    pub fn multiplexes(self) -> bool {
        matches!(self, Self::Http2 | Self::Grpc)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
