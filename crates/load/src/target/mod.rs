//! Targets and contents of requests: URLs resolved to addresses, and requests built once before the
//! run, for any protocol.

mod address;
mod assignment;
mod content;
mod cookies;
mod data;
mod kind;
mod recorded;
mod resolve;
mod selection;
mod session;
mod text;
mod url;

pub(crate) use address::spread;
pub use address::{Address, UnixSocketError};
pub(crate) use assignment::Assignment;
pub use content::{Body, Header, HeaderError};
pub(crate) use cookies::CookieJar;
pub(crate) use data::path_text;
pub use data::{Rows, Source};
pub use kind::{Expectation, Kind, RequestKind};
pub use recorded::{Recorded, RecordedRequests, has_body, resolve_recording};
pub(crate) use resolve::in_families;
pub use resolve::{resolve, resolve_kinds};
pub(crate) use selection::{Chosen, Selector, SessionStep};
pub use session::{Extract, Origin, SessionKind, Step};
pub use text::{Content, Numbers, Place, RangeError, Text, Values};
pub use url::shown_url;

use crate::protocol::Keep;
use crate::protocol::grpc::{self, GrpcCall};
use http::{HeaderName, Method};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::Duration;

/// The servers of a run, and how requests are distributed over them.
#[derive(Clone, Debug, PartialEq)]
pub struct Targets {
    /// Protocol family of the URLs' schemes.
    pub family: Family,
    /// The servers and their requests; not empty.
    pub servers: Vec<Target>,
    /// One choice per given URL or kind of request; not empty.
    pub choices: Vec<Choice>,
    /// Order in which choices are selected.
    pub order: Order,
    /// Basis on which the server of a request is chosen.
    pub server_per: ServerPer,
    /// Maximum connections per server; at least 1. `None`: no limit.
    pub connections_per_server: Option<usize>,
    /// Data of the requests.
    pub sources: Vec<Source>,
    /// Sessions that the choices are the steps of: see [`Self::with_sessions`]. Empty if requests are independent.
    pub sessions: Vec<SessionKind>,
    /// Sequence of the requests, if it was recorded.
    pub recorded: Option<Recorded>,
}

/// Protocol family of all servers of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Family {
    /// `http://` and `https://`.
    Http,
    /// `grpc://` and `grpcs://`: paths name methods; [`Request::make_call`] turns requests into calls.
    Grpc,
    /// `tcp://` and `tls://`: messages of fixed sizes.
    Raw,
    /// `ws://` and `wss://`: messages on connections that are opened at the path. Each URL has a server of its own.
    WebSocket,
}

/// A URL as given, or a kind of request; with a range of hosts, one of several requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its share is this fraction of the sum of all weights; at least 1.
    pub weight: u32,
    /// Pairs of a server and the index of one of its requests, equally likely; not empty.
    pub options: Vec<(usize, usize)>,
    /// Name and checks, for a kind of request.
    pub kind: Option<Box<Kind>>,
}

/// Order in which requests are selected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// Weighted round robin; numbers count up.
    Turn,
    /// Drawn independently at random.
    Random,
}

/// Basis on which the server of a request is chosen if there are several.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ServerPer {
    /// The schedule: each request is for one server, and waits for a connection to it.
    #[default]
    Request,
    /// Connections, each of which keeps its server. In a closed loop a request goes to the server of the
    /// connection that its client gets. In an open loop it goes to that of a connection drawn among all of
    /// the thread's. The request to that server is drawn.
    Connection,
}

impl Targets {
    /// Sets the body of every request.
    pub fn set_body(&mut self, body: &Arc<[u8]>) {
        for request in self.servers.iter_mut().flat_map(|server| &mut server.requests) {
            request.body = Body::Constant(Arc::clone(body));
        }
    }

    /// The unix socket, if all connections go to one.
    #[must_use]
    pub fn unix_socket(&self) -> Option<&Address> {
        self.servers[0].addresses.first().filter(|address| address.ip().is_none())
    }

    /// True if the choices are kinds of requests.
    #[must_use]
    pub fn has_kinds(&self) -> bool {
        self.choices.iter().any(|choice| choice.kind.is_some())
    }

    /// True if a kind of request has checks.
    pub(crate) fn have_checks(&self) -> bool {
        let mut kinds = self.choices.iter().filter_map(|choice| choice.kind.as_ref());
        kinds.any(|kind| kind.expect.is_any())
    }

    fn total_weight(&self) -> u64 {
        self.choices.iter().map(|choice| u64::from(choice.weight)).sum()
    }
}

impl Choice {
    /// Name of the kind of request, if it is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.kind.as_deref().map(|kind| kind.name.as_str())
    }

    /// An option with its index.
    fn option(&self, index: usize) -> (usize, usize, usize) {
        let (server, request) = self.options[index];
        (index, server, request)
    }

    /// Placeholders in its requests.
    fn places<'a>(&self, targets: &'a Targets) -> impl Iterator<Item = Place> + use<'a> {
        let (server, request) = self.options[0];
        targets.servers[server].requests[request].places()
    }
}

/// A server (host and port) and its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Host and port of the URL, as given.
    pub authority: String,
    /// The resolved addresses, those of the family that the resolver names first before the others; not empty.
    pub addresses: Vec<Address>,
    /// With TLS: the name to send in SNI and to verify in the certificate; `None` for plain TCP.
    pub server_name: Option<ServerName<'static>>,
    /// The requests; not empty.
    pub requests: Vec<Request>,
}

impl Target {
    /// Number of its addresses, from the first, that connections are spread over: those of one family, which are hosts behind one
    /// name, such as the pods of a service. The others are other ways to the same hosts, for when these fail.
    #[must_use]
    pub fn spread(&self) -> usize {
        spread(&self.addresses)
    }
}

/// A request, independent of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Such as `GET`.
    pub method: Method,
    /// Such as `https`.
    pub scheme: &'static str,
    /// Host and port to send, unless the headers include a `Host`.
    pub authority: String,
    /// Path and query.
    pub path: Text,
    /// In order, including a `User-Agent`.
    pub headers: Vec<Header>,
    /// The body; empty for none.
    pub body: Body,
    /// gRPC: the messages that a call sends instead of a body.
    pub call: Option<GrpcCall>,
    /// Parts of responses that are kept for their checks.
    pub(crate) keep: Keep,
    /// The cookies of its session are sent, too.
    pub(crate) sends_cookies: bool,
}

impl Request {
    /// Turns the request into a gRPC call. `path`: of the method. `timeout`: sent to the server.
    pub fn make_call(&mut self, path: &str, call: GrpcCall, timeout: Duration) {
        self.method = Method::POST;
        self.scheme = if self.scheme == "grpcs" { "https" } else { "http" };
        self.path = Text::from(path.to_owned());
        self.call = Some(call);
        for (name, value) in grpc::headers(timeout) {
            if self.header(&name).is_none() {
                self.headers.push((name, value).into());
            }
        }
    }

    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &HeaderName) -> Option<&Header> {
        self.headers.iter().find(|header| header.name() == name)
    }

    /// Host without its port.
    pub(crate) fn host(&self) -> &str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.authority,
        }
    }

    /// Placeholders, in the order in which requests contain them: path, headers, body.
    fn places(&self) -> impl Iterator<Item = Place> {
        let headers = self.headers.iter().flat_map(|header| header.value().places());
        self.path.places().chain(headers).chain(self.body.places())
    }

    /// True if a server may expect a body, even an empty one.
    pub(crate) fn may_have_body(&self) -> bool {
        !self.body.is_empty() || has_body(&self.method)
    }
}

/// Part that all requests of a run have in common. The default is a `GET` without a body or additional headers.
#[derive(Clone, Debug, Default)]
pub struct RequestTemplate {
    /// Such as `GET`.
    pub method: Method,
    /// Added to each request; a `Host` replaces the URL's.
    pub headers: Vec<Header>,
    /// The body; empty for none.
    pub body: Body,
    /// Connect to this host and port instead of the URL's.
    pub connect_to: Option<String>,
    /// Connect to this unix socket instead.
    pub unix_socket: Option<Address>,
    /// With TLS: the name to send and to verify instead of the URL's host.
    pub sni: Option<String>,
}

/// A URL that cannot be used; named as [`shown_url`] shows it.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Not a URL.
    #[error("`{url}` is not a URL")]
    NotAUrl {
        /// As given.
        url: String,
        /// The parser's error.
        #[source]
        cause: http::uri::InvalidUri,
    },
    /// An invalid weight.
    #[error("`{0}` has a weight that is not a number from 1 to 1000000")]
    Weight(String),
    /// An invalid range of numbers.
    #[error("`{url}` has a range that cannot be used")]
    Range {
        /// As given.
        url: String,
        /// Fault of the range.
        #[source]
        cause: RangeError,
    },
    /// More hosts than the maximum of a run.
    #[error("with `{0}` there are more than 10000 servers")]
    TooManyServers(String),
    /// A URL with an unsupported scheme.
    #[error("`{url}` has the scheme `{scheme}`; known are http, https, grpc, grpcs, ws, wss, tcp and tls")]
    Scheme {
        /// As given.
        url: String,
        /// Its scheme; empty if there is none.
        scheme: String,
    },
    /// URLs of different protocol families.
    #[error("`{0}` is of another kind than the URLs before it: a run speaks one protocol")]
    Families(String),
    /// Raw TCP URLs must not have a path.
    #[error("`{0}` has a path, of which raw TCP knows nothing")]
    PathOfRaw(String),
    /// Raw TCP URLs must not have a user or a password.
    #[error("`{0}` has credentials, which raw TCP does not send")]
    CredentialsOfRaw(String),
    /// Credentials must not have ranges: they are encoded once.
    #[error("`{0}` has a range of numbers in its credentials, which are the same in all requests")]
    RangeOfCredentials(String),
    /// A header that says how long the body is, and is wrong.
    #[error("the header `{0}` contradicts the body, whose length is sent with it")]
    HeaderOfBody(HeaderName),
    /// A header that a request for a WebSocket has of its own.
    #[error("the header `{0}` is one of the request that opens a WebSocket, which has its own")]
    HeaderOfOpening(HeaderName),
    /// WebSockets are opened once, all in the same way.
    #[error("{0} has a range of numbers, and connections of WebSocket are all opened alike")]
    RangeOfOpening(String),
    /// A header of which a request has one.
    #[error("the header `{0}` is given twice")]
    RepeatedHeader(HeaderName),
    /// Kinds of requests are of HTTP.
    #[error("`{0}` is not a URL of HTTP, as kinds of requests need")]
    KindsOfHttp(String),
    /// The URL before the paths of kinds of requests.
    #[error("`{0}` is not a URL that paths can follow: it has a weight, a query or a fragment")]
    Base(String),
    /// A recording names its requests.
    #[error("`{0}` has ranges of numbers, and the requests are those of a recording")]
    RangeOfRecording(String),
    /// More requests than the maximum of a run.
    #[error("with `{0}` there are more than 100000 requests, one for each kind and host")]
    TooManyRequests(String),
    /// A kind of request that cannot be sent.
    #[error("the request `{name}`")]
    Kind {
        /// Name in results.
        name: String,
        /// Fault of headers or body.
        #[source]
        cause: Box<TargetError>,
    },
    /// Raw TCP bodies must not have ranges.
    #[error("the body has a range of numbers, and messages of raw TCP are all alike")]
    RangeOfRaw,
    /// The URL has no host.
    #[error("`{0}` names no host")]
    NoHost(String),
    /// An invalid port.
    #[error("`{url}` has the port `{port}`; ports are 1 to 65535")]
    Port {
        /// As given.
        url: String,
        /// The text after the host.
        port: String,
    },
    /// A name that cannot be in a certificate.
    #[error("`{0}` is not a name of a server: TLS needs a DNS name or an IP address")]
    ServerName(String),
    /// The name cannot be resolved.
    #[error("look up `{authority}`")]
    Resolve {
        /// Host and port.
        authority: String,
        /// The resolver's error.
        #[source]
        cause: std::io::Error,
    },
    /// The name resolved to no address.
    #[error("`{0}` has no address")]
    NoAddress(String),
}
