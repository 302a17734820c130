//! Where requests go and what they say: URLs resolved to addresses, requests made once before the run, for any protocol.

mod assignment;
mod selection;
mod text;
mod url;

pub(crate) use assignment::Assignment;
pub(crate) use selection::{Chosen, Selector};
pub use text::{Numbers, RangeError, Text};

use crate::protocol::grpc::{self, GrpcCall};
use http::header::USER_AGENT;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method, Uri};
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use url::UrlTemplate;

/// The usual `User-Agent`.
const THIS_PROGRAM: &str = concat!("meshmeter/", env!("CARGO_PKG_VERSION"));

/// Most servers of one run.
const MOST_SERVERS: usize = 10_000;

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

/// A scheme of URLs.
#[derive(Clone, Copy)]
struct Scheme {
    name: &'static str,
    family: Family,
    tls: bool,
    usual_port: Option<u16>,
}

const SCHEMES: [Scheme; 6] = [
    Scheme { name: "http", family: Family::Http, tls: false, usual_port: Some(80) },
    Scheme { name: "https", family: Family::Http, tls: true, usual_port: Some(443) },
    Scheme { name: "grpc", family: Family::Grpc, tls: false, usual_port: Some(80) },
    Scheme { name: "grpcs", family: Family::Grpc, tls: true, usual_port: Some(443) },
    Scheme { name: "tcp", family: Family::Raw, tls: false, usual_port: None },
    Scheme { name: "tls", family: Family::Raw, tls: true, usual_port: None },
];

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

/// Resolves every URL. URLs of one host and port share a server.
///
/// A URL may have a weight before it, as in `3=http://…`, and ranges of numbers in its host and path, as in
/// `https://shop-{1..1000}.example/get/{1..100}`: one server for each host, a number drawn for each request in a path.
///
/// Blocks while names are looked up.
///
/// # Errors
/// Where a URL is not one that this engine can load, or a name has no address.
pub fn resolve(urls: &[String], template: &RequestTemplate) -> Result<Targets, TargetError> {
    let mut resolver = Resolver {
        template,
        family: None,
        servers: Vec::new(),
        index: HashMap::new(),
        addresses: HashMap::new(),
    };
    let mut choices = Vec::new();
    let mut is_plain = true;
    for url in urls {
        let template = UrlTemplate::parse(url)?;
        is_plain &= template.weight == 1 && !template.has_ranges();
        let hosts = template.urls(MOST_SERVERS)?;
        let options = hosts.iter().map(|host| resolver.option(host, &template.path));
        choices.push(Choice { weight: template.weight, options: options.collect::<Result<_, _>>()? });
    }
    let order = if is_plain { Order::Turn } else { Order::Random };
    let family = resolver.family.unwrap_or(Family::Http);
    Ok(Targets { family, servers: resolver.servers, choices, order, connections_per_server: None })
}

/// Makes servers of URLs.
struct Resolver<'a> {
    template: &'a RequestTemplate,
    /// Of the URLs so far.
    family: Option<Family>,
    servers: Vec<Target>,
    /// The server of an endpoint and a name for TLS.
    index: HashMap<(String, Option<ServerName<'static>>), usize>,
    /// What endpoints resolved to.
    addresses: HashMap<String, Vec<SocketAddr>>,
}

impl Resolver<'_> {
    /// The server and the request of a URL whose path is `path`.
    fn option(&mut self, url: &str, path: &Text) -> Result<(usize, usize), TargetError> {
        let (uri, scheme) = parse(url)?;
        if *self.family.get_or_insert(scheme.family) != scheme.family {
            return Err(TargetError::Families(url.to_owned()));
        }
        let authority = uri.authority().ok_or_else(|| TargetError::NoHost(url.to_owned()))?;
        let server_name = if scheme.tls { Some(server_name(&uri, self.template)?) } else { None };
        let port = port(authority, scheme.usual_port)
            .map_err(|port| TargetError::Port { url: url.to_owned(), port })?;
        let endpoint =
            self.template.connect_to.clone().unwrap_or_else(|| format!("{}:{port}", authority.host()));
        let request = request(scheme, authority.as_str(), path.clone(), self.template);
        let key = (endpoint, server_name);
        let server = match self.index.get(&key) {
            Some(server) => *server,
            None if self.servers.len() == MOST_SERVERS => {
                return Err(TargetError::TooManyServers(url.to_owned()));
            }
            None => {
                let addresses = self.look_up(&key.0)?;
                let (authority, server_name) = key.clone();
                self.servers.push(Target { authority, addresses, server_name, requests: Vec::new() });
                self.index.insert(key, self.servers.len() - 1);
                self.servers.len() - 1
            }
        };
        self.servers[server].requests.push(request);
        Ok((server, self.servers[server].requests.len() - 1))
    }

    fn look_up(&mut self, endpoint: &str) -> Result<Vec<SocketAddr>, TargetError> {
        if let Some(known) = self.addresses.get(endpoint) {
            return Ok(known.clone());
        }
        let found = look_up(endpoint)?;
        self.addresses.insert(endpoint.to_owned(), found.clone());
        Ok(found)
    }
}

fn parse(url: &str) -> Result<(Uri, Scheme), TargetError> {
    let uri: Uri = url.parse().map_err(|cause| TargetError::NotAUrl { url: url.to_owned(), cause })?;
    let name = uri.scheme_str().unwrap_or_default();
    let scheme = SCHEMES
        .iter()
        .find(|scheme| scheme.name == name)
        .ok_or_else(|| TargetError::Scheme { url: url.to_owned(), scheme: name.to_owned() })?;
    if uri.host().is_none_or(str::is_empty) {
        return Err(TargetError::NoHost(url.to_owned()));
    }
    if scheme.family == Family::Raw
        && !matches!(uri.path_and_query().map(|path| path.as_str()), None | Some("/"))
    {
        return Err(TargetError::PathOfRaw(url.to_owned()));
    }
    Ok((uri, *scheme))
}

/// The port of a URL, the usual one where there is none; the text of one that does not exist. The `http` crate passes
/// those over in silence, which would put the load on the usual port.
fn port(authority: &Authority, usual: Option<u16>) -> Result<u16, String> {
    let text = authority.as_str();
    let host_and_port = text.rsplit_once('@').map_or(text, |(_, rest)| rest);
    let after_host = host_and_port.strip_prefix(authority.host()).unwrap_or_default();
    match after_host.strip_prefix(':') {
        None | Some("") => usual.ok_or_else(String::new),
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| port.to_owned()),
    }
}

/// The name for TLS.
fn server_name(uri: &Uri, template: &RequestTemplate) -> Result<ServerName<'static>, TargetError> {
    let host = template.sni.as_deref().or_else(|| uri.host()).unwrap_or_default();
    // An IPv6 address has brackets in a URL and none in a certificate.
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(name.to_owned()).map_err(|_| TargetError::ServerName(host.to_owned()))
}

fn look_up(endpoint: &str) -> Result<Vec<SocketAddr>, TargetError> {
    let addresses: Vec<SocketAddr> = endpoint
        .to_socket_addrs()
        .map_err(|cause| TargetError::Resolve { authority: endpoint.to_owned(), cause })?
        .collect();
    if addresses.is_empty() { Err(TargetError::NoAddress(endpoint.to_owned())) } else { Ok(addresses) }
}

/// The request, as every protocol can write it out.
fn request(scheme: Scheme, authority: &str, path: Text, template: &RequestTemplate) -> Request {
    let mut headers = template.headers.clone();
    if !headers.iter().any(|(name, _)| *name == USER_AGENT) {
        headers.insert(0, (USER_AGENT, HeaderValue::from_static(THIS_PROGRAM)));
    }
    Request {
        method: template.method.clone(),
        scheme: scheme.name,
        authority: authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_owned(),
        path,
        headers,
        body: Arc::clone(&template.body),
        call: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_server_share_a_target() {
        let urls =
            ["http://127.0.0.1:81/a", "http://127.0.0.1:81/b?c=d", "http://127.0.0.1/"].map(String::from);
        let targets = resolve(&urls, &RequestTemplate::default()).unwrap().servers;
        assert_eq!(targets.len(), 2);
        assert_eq!(targets[0].requests.len(), 2);
        assert_eq!(targets[0].requests[1].path, Text::from("/b?c=d".to_owned()));
        assert_eq!(targets[0].requests[1].authority, "127.0.0.1:81");
        assert_eq!(targets[1].addresses, ["127.0.0.1:80".parse().unwrap()]);
    }

    #[test]
    fn servers_are_bounded_and_counted_once() {
        let count = |urls: &[&str]| {
            let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
            resolve(&urls, &RequestTemplate::default()).map(|targets| targets.servers.len())
        };
        let most = "http://127.0.0.1:{1..10000}/a";
        assert_eq!(count(&[most, "http://127.0.0.1:{1..10000}/b"]).unwrap(), 10_000);
        for one_more in ["http://127.0.0.1:10001/", "http://127.0.0.1:{10001..10002}/"] {
            assert!(matches!(count(&[most, one_more]), Err(TargetError::TooManyServers(_))), "{one_more}");
        }
    }

    #[test]
    fn https_goes_to_its_own_port_by_the_name_of_the_host_or_the_one_given() {
        let urls = ["https://127.0.0.1/", "https://127.0.0.1:80/", "http://127.0.0.1/", "https://[::1]:9/"];
        let mut template = RequestTemplate::default();
        let targets = resolve(&urls.map(String::from), &template).unwrap().servers;
        let found: Vec<_> = targets
            .iter()
            .map(|target| {
                (
                    target.addresses[0].port(),
                    target.server_name.as_ref().map(|name| name.to_str().into_owned()),
                )
            })
            .collect();
        let name = |name: &str| Some(name.to_owned());
        // One port spoken to in two ways is two targets.
        assert_eq!(found, [(443, name("127.0.0.1")), (80, name("127.0.0.1")), (80, None), (9, name("::1"))]);
        template.sni = Some("shop.example".into());
        let targets = resolve(&["https://127.0.0.1/".to_owned()], &template).unwrap().servers;
        assert_eq!(targets[0].server_name, Some("shop.example".try_into().unwrap()));
        assert_eq!(targets[0].requests[0].authority, "127.0.0.1");
    }

    #[test]
    fn ports_are_the_given_one_or_80() {
        for (url, expected) in [
            ("http://127.0.0.1", 80),
            ("http://127.0.0.1:/", 80),
            ("http://[::1]/", 80),
            ("http://127.0.0.1:1", 1),
            ("http://[::1]:8080/", 8080),
            ("http://127.0.0.1:65535/", 65535),
            ("http://user:81@127.0.0.1/", 80),
            ("http://127.0.0.1:9@127.0.0.1:82/", 82),
        ] {
            let targets = resolve(&[url.to_owned()], &RequestTemplate::default()).unwrap().servers;
            assert_eq!(targets[0].addresses[0].port(), expected, "{url}");
        }
    }

    #[test]
    fn unusable_urls_are_named() {
        for (url, expected) in [
            ("ftp://a/", "scheme `ftp`"),
            ("https://-a-.example/", "not a name of a server"),
            ("a.example/x", "not a URL"),
            ("/x", "scheme ``"),
            ("http://", "not a URL"),
            ("", "not a URL"),
            ("http://a b/", "not a URL"),
            ("http://127.0.0.1:99999/", "the port `99999`"),
            ("http://127.0.0.1:0/", "the port `0`"),
            ("http://[::1]:65536/", "the port `65536`"),
            ("tcp://127.0.0.1", "the port ``"),
            ("tcp://127.0.0.1:9/x", "has a path"),
        ] {
            let message = resolve(&[url.to_owned()], &RequestTemplate::default()).unwrap_err().to_string();
            assert!(message.contains(expected), "{url}: {message}");
        }
    }
}
