//! Where requests go and what they say: URLs resolved to addresses, requests made once before the run, for any protocol.

mod assignment;
mod resolve;
mod selection;
mod text;
mod url;

pub(crate) use assignment::Assignment;
pub use resolve::resolve;
pub(crate) use selection::{Chosen, Selector};
pub use text::{Numbers, RangeError, Text};

use crate::protocol::grpc::{self, GrpcCall};
use http::{HeaderName, HeaderValue, Method};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What a run loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Targets {
    /// What the URLs' schemes ask for.
    pub family: Family,
    /// The servers and their requests; not empty.
    pub servers: Vec<Target>,
    /// What is to be chosen from for each request: one for each URL given; not empty.
    pub choices: Vec<Choice>,
    /// How it is chosen.
    pub order: Order,
    /// What decides on the server of a request.
    pub server_per: ServerPer,
    /// Most connections to one server; at least 1. Absent: no bound.
    pub connections_per_server: Option<usize>,
}

/// What is spoken with all servers of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Family {
    /// `http://` and `https://`.
    Http,
    /// `grpc://` and `grpcs://`: paths name methods; [`Request::make_call`] makes calls of the requests.
    Grpc,
    /// `tcp://` and `tls://`: messages of given sizes.
    Raw,
}

/// A URL as given: with several hosts, one of several requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its share is this part of the sum of all weights; at least 1.
    pub weight: u32,
    /// The server and which of its requests, equally likely; not empty.
    pub options: Vec<(usize, usize)>,
}

/// How requests are chosen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// One after the other, heavier ones more often; numbers count up.
    Turn,
    /// Each drawn by itself.
    Random,
}

/// What decides on the server of a request, where there are several.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ServerPer {
    /// The schedule: each request is for a server, and waits for a connection to it.
    #[default]
    Request,
    /// Connections, each of which keeps to its server. In a closed loop a request is for the server of the connection that
    /// its client gets; in an open loop it is for that of a connection drawn among all of the thread's. What is asked of the
    /// server is drawn.
    Connection,
}

impl Targets {
    /// Every request gets this body.
    pub fn set_body(&mut self, body: &Arc<[u8]>) {
        for request in self.servers.iter_mut().flat_map(|server| &mut server.requests) {
            request.body = Arc::clone(body);
        }
    }

    fn total_weight(&self) -> u64 {
        self.choices.iter().map(|choice| u64::from(choice.weight)).sum()
    }
}

impl Choice {
    /// Places for numbers in its path.
    fn places<'a>(&self, targets: &'a Targets) -> impl Iterator<Item = Numbers> + use<'a> {
        let (server, request) = self.options[0];
        targets.servers[server].requests[request].path.places()
    }
}

/// One server (host and port) and the requests that go there.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The URL's host and port, as given.
    pub authority: String,
    /// The addresses that it resolved to, in the resolver's order; not empty.
    pub addresses: Vec<SocketAddr>,
    /// Over TLS: the name that the server is asked for and that its certificate must have; absent for plain TCP.
    pub server_name: Option<ServerName<'static>>,
    /// The requests; not empty.
    pub requests: Vec<Request>,
}

/// A request, as any protocol may write it out.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Such as `GET`.
    pub method: Method,
    /// Such as `https`.
    pub scheme: &'static str,
    /// Host and port as the server is to be told them, unless there is a `Host` among the headers.
    pub authority: String,
    /// Path and query.
    pub path: Text,
    /// In their order; a `User-Agent` is among them.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body; empty for none.
    pub body: Arc<[u8]>,
    /// gRPC: the messages that a call sends in place of a body.
    pub call: Option<GrpcCall>,
}

impl Request {
    /// Makes it a call of gRPC. `path`: of the method. `timeout`: the server is told.
    pub fn make_call(&mut self, path: &str, call: GrpcCall, timeout: Duration) {
        self.method = Method::POST;
        self.scheme = if self.scheme == "grpcs" { "https" } else { "http" };
        self.path = Text::from(path.to_owned());
        self.call = Some(call);
        for (name, value) in grpc::headers(timeout) {
            if !self.headers.iter().any(|(given, _)| *given == name) {
                self.headers.push((name, value));
            }
        }
    }

    /// Whether a server may expect a body, be it an empty one.
    pub(crate) fn may_have_body(&self) -> bool {
        !self.body.is_empty() || matches!(self.method, Method::POST | Method::PUT | Method::PATCH)
    }
}

/// What every request of a run has in common. By default a `GET` without a body or headers of its own.
#[derive(Clone, Debug, Default)]
pub struct RequestTemplate {
    /// Such as `GET`.
    pub method: Method,
    /// Added to each request; a `Host` here replaces the URL's.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body; empty for none.
    pub body: Arc<[u8]>,
    /// Connect there instead of to the URL's host and port.
    pub connect_to: Option<String>,
    /// Over TLS: the name to ask for and to verify instead of the URL's host.
    pub sni: Option<String>,
}

/// A URL that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Not a URL.
    #[error("`{url}` is not a URL")]
    NotAUrl {
        /// As given.
        url: String,
        /// What is wrong with it.
        #[source]
        cause: http::uri::InvalidUri,
    },
    /// A weight that is none.
    #[error("`{0}` has a weight that is no number from 1 to 1000000")]
    Weight(String),
    /// A range of numbers that is none.
    #[error("`{url}` has a range that cannot be used")]
    Range {
        /// As given.
        url: String,
        /// What is wrong with it.
        #[source]
        cause: RangeError,
    },
    /// More hosts than a run may have.
    #[error("with `{0}` there are more than 10000 servers")]
    TooManyServers(String),
    /// A URL of another kind.
    #[error("`{url}` has the scheme `{scheme}`; known are http, https, grpc, grpcs, tcp and tls")]
    Scheme {
        /// As given.
        url: String,
        /// Its scheme; empty where it has none.
        scheme: String,
    },
    /// URLs of different families.
    #[error("`{0}` is of another kind than the URLs before it: a run speaks one protocol")]
    Families(String),
    /// Raw TCP has no paths.
    #[error("`{0}` has a path, of which raw TCP knows nothing")]
    PathOfRaw(String),
    /// No host in the URL.
    #[error("`{0}` names no host")]
    NoHost(String),
    /// A port that does not exist.
    #[error("`{url}` has the port `{port}`; ports are 1 to 65535")]
    Port {
        /// As given.
        url: String,
        /// What stands after the host.
        port: String,
    },
    /// A name that no certificate can have.
    #[error("`{0}` is not a name of a server: TLS needs a DNS name or an IP address")]
    ServerName(String),
    /// The name has no address.
    #[error("look up `{authority}`")]
    Resolve {
        /// Host and port.
        authority: String,
        /// What the resolver said.
        #[source]
        cause: std::io::Error,
    },
    /// The name resolved to nothing.
    #[error("`{0}` has no address")]
    NoAddress(String),
}
