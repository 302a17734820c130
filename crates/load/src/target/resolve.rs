//! Resolves URLs to targets: schemes, ports, names and addresses.

use super::url::UrlTemplate;
use super::{
    Address, Body, Choice, Family, Header, Order, Request, RequestKind, RequestTemplate, ServerPer, Source,
    Target, TargetError, Targets, Text,
};
use crate::protocol::Keep;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::uri::Authority;
use http::{HeaderValue, Uri};
use results::{Build, percent_decoded};
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};

/// Maximum number of servers of a run.
const MAX_SERVERS: usize = 10_000;
/// Maximum number of requests of kinds, one for each kind and server.
const MAX_REQUESTS: usize = 100_000;

/// A URL scheme.
#[derive(Clone, Copy)]
struct Scheme {
    name: &'static str,
    family: Family,
    tls: bool,
    usual_port: Option<u16>,
}

const SCHEMES: [Scheme; 8] = [
    Scheme { name: "http", family: Family::Http, tls: false, usual_port: Some(80) },
    Scheme { name: "https", family: Family::Http, tls: true, usual_port: Some(443) },
    Scheme { name: "grpc", family: Family::Grpc, tls: false, usual_port: Some(80) },
    Scheme { name: "grpcs", family: Family::Grpc, tls: true, usual_port: Some(443) },
    Scheme { name: "ws", family: Family::WebSocket, tls: false, usual_port: Some(80) },
    Scheme { name: "wss", family: Family::WebSocket, tls: true, usual_port: Some(443) },
    Scheme { name: "tcp", family: Family::Raw, tls: false, usual_port: None },
    Scheme { name: "tls", family: Family::Raw, tls: true, usual_port: None },
];

/// Resolves all URLs. URLs with the same host and port share a server.
///
/// A URL may have a weight in front, as in `3=http://…`, and ranges of numbers in its host and path, as in
/// `https://shop-{1..1000}.example/get/{1..100}`. A host range makes one server per host; for a path range a
/// number is drawn per request. A URL without a scheme is one of HTTP. User and password become a header
/// `Authorization`, unless the template has one; no error contains them.
///
/// Blocks during name resolution.
///
/// # Errors
/// Returns an error if a URL is not one that this engine can load, or if a name has no address.
pub fn resolve(urls: &[String], template: &RequestTemplate) -> Result<Targets, TargetError> {
    let mut resolver = Resolver::new(template);
    let mut choices = Vec::new();
    let mut is_plain = true;
    for url in urls {
        let template = UrlTemplate::parse(url)?;
        is_plain &= template.weight == 1 && !template.has_ranges();
        let hosts = template.urls(MAX_SERVERS)?;
        let options = hosts.iter().map(|host| resolver.option(host, &template));
        let options = options.collect::<Result<_, _>>()?;
        choices.push(Choice { weight: template.weight, options, kind: None });
    }
    let family = resolver.family.unwrap_or(Family::Http);
    check_content(family, template)?;
    let template_places = template.headers.iter().flat_map(|header| header.value().places());
    is_plain &= template_places.chain(template.body.places()).next().is_none();
    let order = if is_plain { Order::Turn } else { Order::Random };
    Ok(resolver.targets(choices, order, Vec::new()))
}

/// Resolves kinds of requests to the servers of one URL, whose path comes before theirs. Like [`resolve`] otherwise. `sources`:
/// the data of their placeholders.
///
/// # Errors
/// Returns an error if the URL is not one that paths can follow, or if a kind cannot be sent.
pub fn resolve_kinds(url: &str, kinds: &[RequestKind], sources: Vec<Source>) -> Result<Targets, TargetError> {
    let base = UrlTemplate::parse(url.trim_end_matches('/'))?;
    if base.weight != 1 || url.contains(['?', '#']) {
        return Err(TargetError::Base(super::shown_url(url)));
    }
    let hosts = base.urls(MAX_SERVERS)?;
    if hosts.len().saturating_mul(kinds.len()) > MAX_REQUESTS {
        return Err(TargetError::TooManyRequests(super::shown_url(url)));
    }
    let none = RequestTemplate::default();
    let mut resolver = Resolver::new(&none);
    let mut choices = Vec::new();
    for RequestKind { weight, path, template, kind } in kinds {
        resolver.template = template;
        let mut whole = base.clone();
        whole.path = Text::default();
        if base.path.as_literal() != Some(b"/") {
            whole.path.append(&base.path);
        }
        whole.path.append(path);
        let options = hosts.iter().map(|host| resolver.option(host, &whole));
        let options: Vec<(usize, usize)> = options.collect::<Result<_, _>>()?;
        for (server, request) in &options {
            resolver.servers[*server].requests[*request].keep = kind.expect.keep();
        }
        if resolver.family != Some(Family::Http) {
            return Err(TargetError::KindsOfHttp(super::shown_url(url)));
        }
        check_content(Family::Http, template)
            .map_err(|cause| TargetError::Kind { name: kind.name.clone(), cause: Box::new(cause) })?;
        choices.push(Choice { weight: *weight, options, kind: Some(Box::new(kind.clone())) });
    }
    Ok(resolver.targets(choices, Order::Random, sources))
}

/// Rejects headers and bodies that a server could only read as garbage.
fn check_content(family: Family, template: &RequestTemplate) -> Result<(), TargetError> {
    if family == Family::Raw && template.body.constant().is_none() {
        return Err(TargetError::RangeOfRaw);
    }
    if family == Family::WebSocket {
        check_opening(template)?;
    }
    for name in [HOST, CONTENT_LENGTH] {
        if template.headers.iter().filter(|header| *header.name() == name).count() > 1 {
            return Err(TargetError::RepeatedHeader(name));
        }
    }
    // A call's messages are framed, whatever their length.
    let length =
        template.body.constant().filter(|_| family != Family::Grpc).map(|body| body.len().to_string());
    let contradicts = |header: &&Header| match *header.name() {
        TRANSFER_ENCODING => true,
        CONTENT_LENGTH => header.value().as_literal() != length.as_deref().map(str::as_bytes),
        _ => false,
    };
    match template.headers.iter().find(contradicts) {
        Some(header) => Err(TargetError::HeaderOfBody(header.name().clone())),
        None => Ok(()),
    }
}

/// Rejects headers that a request for a WebSocket has of its own, or that vary: a connection is opened once.
fn check_opening(template: &RequestTemplate) -> Result<(), TargetError> {
    let own = [
        CONNECTION,
        UPGRADE,
        SEC_WEBSOCKET_KEY,
        SEC_WEBSOCKET_VERSION,
        SEC_WEBSOCKET_EXTENSIONS,
        CONTENT_LENGTH,
        TRANSFER_ENCODING,
    ];
    for header in &template.headers {
        if own.contains(header.name()) {
            return Err(TargetError::HeaderOfOpening(header.name().clone()));
        }
        if header.value().places().next().is_some() {
            return Err(TargetError::RangeOfOpening(format!("the header `{}`", header.name())));
        }
    }
    Ok(())
}

/// Builds servers from URLs.
struct Resolver<'a> {
    template: &'a RequestTemplate,
    /// Family of the URLs so far.
    family: Option<Family>,
    servers: Vec<Target>,
    /// Server index by endpoint and TLS server name.
    index: HashMap<(String, Option<ServerName<'static>>), usize>,
    /// Resolved addresses by endpoint.
    addresses: HashMap<String, Vec<Address>>,
}

impl<'a> Resolver<'a> {
    fn new(template: &'a RequestTemplate) -> Self {
        Self { template, family: None, servers: Vec::new(), index: HashMap::new(), addresses: HashMap::new() }
    }

    fn targets(self, choices: Vec<Choice>, order: Order, sources: Vec<Source>) -> Targets {
        Targets {
            family: self.family.unwrap_or(Family::Http),
            servers: self.servers,
            choices,
            order,
            server_per: ServerPer::default(),
            connections_per_server: None,
            sources,
            sessions: Vec::new(),
            recorded: None,
        }
    }

    /// Returns the server and the request of a URL of this template.
    fn option(&mut self, url: &str, template: &UrlTemplate<'_>) -> Result<(usize, usize), TargetError> {
        let (uri, scheme) = parse(url)?;
        if scheme.family == Family::Raw && template.credentials.is_some() {
            return Err(TargetError::CredentialsOfRaw(url.to_owned()));
        }
        if template.credentials.is_some_and(|text| Body::with_ranges(text.as_bytes()).constant().is_none()) {
            return Err(TargetError::RangeOfCredentials(url.to_owned()));
        }
        if *self.family.get_or_insert(scheme.family) != scheme.family {
            return Err(TargetError::Families(url.to_owned()));
        }
        let authority = uri.authority().ok_or_else(|| TargetError::NoHost(url.to_owned()))?;
        let server_name = if scheme.tls { Some(server_name(&uri, self.template)?) } else { None };
        let port = port(authority, scheme.usual_port)
            .map_err(|port| TargetError::Port { url: url.to_owned(), port })?;
        let unix_socket = self.template.unix_socket.as_ref().map(Address::to_string);
        let endpoint = unix_socket
            .or_else(|| self.template.connect_to.clone())
            .unwrap_or_else(|| format!("{}:{port}", authority.host()));
        let mut request = request(scheme, authority.as_str(), template.path.clone(), self.template);
        if let Some(credentials) = template.credentials {
            authorize(&mut request, credentials);
        }
        let is_opened_at_path = scheme.family == Family::WebSocket;
        if is_opened_at_path && template.path.places().next().is_some() {
            return Err(TargetError::RangeOfOpening(format!("the path of `{url}`")));
        }
        let key = (endpoint, server_name);
        let server = match self.index.get(&key).filter(|_| !is_opened_at_path) {
            Some(server) => *server,
            None if self.servers.len() == MAX_SERVERS => {
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

    fn look_up(&mut self, endpoint: &str) -> Result<Vec<Address>, TargetError> {
        if let Some(socket) = &self.template.unix_socket {
            return Ok(vec![socket.clone()]);
        }
        if let Some(known) = self.addresses.get(endpoint) {
            return Ok(known.clone());
        }
        let found: Vec<Address> = look_up(endpoint)?.into_iter().map(Address::from).collect();
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

/// The port of a URL, or the default if it has none; an invalid port is returned as the error. The `http`
/// crate silently ignores an invalid port, which would send the load to the default port.
fn port(authority: &Authority, usual: Option<u16>) -> Result<u16, String> {
    let after_host = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    match after_host.strip_prefix(':') {
        None | Some("") => usual.ok_or_else(String::new),
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| port.to_owned()),
    }
}

/// The TLS server name.
fn server_name(uri: &Uri, template: &RequestTemplate) -> Result<ServerName<'static>, TargetError> {
    let host = template.sni.as_deref().or_else(|| uri.host()).unwrap_or_default();
    // An IPv6 address is in brackets in a URL, but not in a certificate.
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(name.to_owned()).map_err(|_| TargetError::ServerName(host.to_owned()))
}

fn look_up(endpoint: &str) -> Result<Vec<SocketAddr>, TargetError> {
    let found = endpoint
        .to_socket_addrs()
        .map_err(|cause| TargetError::Resolve { authority: endpoint.to_owned(), cause })?;
    let addresses = in_families(found.collect());
    if addresses.is_empty() { Err(TargetError::NoAddress(endpoint.to_owned())) } else { Ok(addresses) }
}

/// The addresses without duplicates, those of the first one's family before the others.
pub(crate) fn in_families(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let first = addresses.first().map(SocketAddr::is_ipv4);
    addresses.sort_by_key(|address| Some(address.is_ipv4()) != first);
    addresses
}

/// Builds a request for any protocol.
fn request(scheme: Scheme, authority: &str, path: Text, template: &RequestTemplate) -> Request {
    let mut headers = template.headers.clone();
    if !headers.iter().any(|header| *header.name() == USER_AGENT) {
        headers.insert(0, (USER_AGENT, user_agent()).into());
    }
    Request {
        method: template.method.clone(),
        scheme: scheme.name,
        authority: authority.to_owned(),
        path,
        headers,
        body: template.body.clone(),
        call: None,
        keep: Keep::default(),
        sends_cookies: false,
    }
}

/// The default `User-Agent`.
fn user_agent() -> HeaderValue {
    HeaderValue::try_from(Build::this().user_agent()).expect("versions and commits are visible ASCII")
}

/// Adds basic authentication with the credentials of a URL, unless a header was given.
fn authorize(request: &mut Request, credentials: &str) {
    if request.header(&AUTHORIZATION).is_some() {
        return;
    }
    let mut credentials = percent_decoded(credentials);
    if !credentials.contains(&b':') {
        credentials.push(b':');
    }
    let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(credentials)))
        .expect("Base64 is visible ASCII");
    request.headers.push((AUTHORIZATION, value).into());
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
        assert_eq!(targets[1].addresses, [Address::Ip("127.0.0.1:80".parse().unwrap())]);
    }

    #[test]
    fn server_limit_counts_each_server_once() {
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
    fn https_uses_its_default_port_and_host_or_given_name() {
        let urls = ["https://127.0.0.1/", "https://127.0.0.1:80/", "http://127.0.0.1/", "https://[::1]:9/"];
        let mut template = RequestTemplate::default();
        let targets = resolve(&urls.map(String::from), &template).unwrap().servers;
        let found: Vec<_> = targets
            .iter()
            .map(|target| {
                (
                    target.addresses[0].ip().unwrap().port(),
                    target.server_name.as_ref().map(|name| name.to_str().into_owned()),
                )
            })
            .collect();
        let name = |name: &str| Some(name.to_owned());
        // One port with and without TLS is two targets.
        assert_eq!(found, [(443, name("127.0.0.1")), (80, name("127.0.0.1")), (80, None), (9, name("::1"))]);
        template.sni = Some("shop.example".into());
        let targets = resolve(&["https://127.0.0.1/".to_owned()], &template).unwrap().servers;
        assert_eq!(targets[0].server_name, Some("shop.example".try_into().unwrap()));
        assert_eq!(targets[0].requests[0].authority, "127.0.0.1");
    }

    #[test]
    fn port_is_given_one_or_80() {
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
            assert_eq!(targets[0].addresses[0].ip().unwrap().port(), expected, "{url}");
        }
    }

    #[test]
    fn unusable_urls_are_named_in_errors() {
        for (url, expected) in [
            ("ftp://a/", "scheme `ftp`"),
            ("https://-a-.example/", "not a name of a server"),
            ("http:/a", "not a URL"),
            ("localhost:http/", "the port `http`"),
            ("/x", "scheme ``"),
            ("http://", "not a URL"),
            ("", "not a URL"),
            ("http://a b/", "not a URL"),
            ("http://127.0.0.1:99999/", "the port `99999`"),
            ("http://127.0.0.1:0/", "the port `0`"),
            ("http://[::1]:65536/", "the port `65536`"),
            ("tcp://127.0.0.1", "the port ``"),
            ("tcp://127.0.0.1:9/x", "has a path"),
            ("tcp://tom:secret@127.0.0.1:9", "`tcp://127.0.0.1:9` has credentials"),
            (
                "http://tom-{1..9}:secret@127.0.0.1/",
                "`http://127.0.0.1/` has a range of numbers in its credentials",
            ),
            ("ftp://tom:secret@a/", "`ftp://a/`"),
            ("http://tom:secret@a:0/", "`http://a:0/`"),
            ("http://tom:secret@a b/", "`http://a b/`"),
        ] {
            let message = resolve(&[url.to_owned()], &RequestTemplate::default()).unwrap_err().to_string();
            assert!(message.contains(expected), "{url}: {message}");
        }
    }

    #[test]
    fn headers_that_contradict_the_body_are_refused() {
        let resolved = |url: &str, headers: &[(&str, &str)], body: Body| {
            let headers = headers.iter().map(|(name, value)| Header::new(name, value).unwrap().with_ranges());
            let template = RequestTemplate { headers: headers.collect(), body, ..RequestTemplate::default() };
            resolve(&[url.to_owned()], &template)
                .map(|targets| targets.order)
                .map_err(|error| error.to_string())
        };
        let url = "http://127.0.0.1:81/";
        let hello = || Body::from(b"hello".as_slice());
        let varying = || Body::with_ranges(b"hello {1..9}");
        for (headers, body, part) in [
            (&[("Content-Length", "4")][..], hello(), "`content-length` contradicts the body"),
            (&[("Content-Length", "5, 5")], hello(), "`content-length` contradicts the body"),
            (&[("Content-Length", "7")], Body::default(), "`content-length` contradicts the body"),
            (&[("Content-Length", "{5..5}")], hello(), "`content-length` contradicts the body"),
            (&[("Content-Length", "7")], varying(), "`content-length` contradicts the body"),
            (&[("content-length", "5"), ("Content-Length", "5")], hello(), "`content-length` is given twice"),
            (&[("TRANSFER-ENCODING", "chunked")], hello(), "`transfer-encoding` contradicts the body"),
            (&[("Host", "a"), ("host", "b")], hello(), "`host` is given twice"),
        ] {
            let error = resolved(url, headers, body).unwrap_err();
            assert!(error.contains(part), "{headers:?}: {error}");
        }
        assert!(resolved("grpc://127.0.0.1:81/a.B/C", &[("Content-Length", "0")], Body::default()).is_err());
        assert!(resolved("tcp://127.0.0.1:81", &[], varying()).is_err());
        // With ranges each request is drawn.
        assert_eq!(resolved(url, &[("Content-Length", "5"), ("Host", "a")], hello()), Ok(Order::Turn));
        assert_eq!(resolved(url, &[("Accept", "a"), ("Accept", "b")], varying()), Ok(Order::Random));
        assert_eq!(resolved(url, &[("X-User", "{1..9}")], hello()), Ok(Order::Random));
    }

    #[test]
    fn credentials_become_header_unless_one_is_given() {
        let authorization = |url: &str, template: &RequestTemplate| {
            let targets = resolve(&[url.to_owned()], template).unwrap();
            let request = targets.servers[0].requests[0].clone();
            assert_eq!(
                (targets.servers[0].authority.as_str(), request.authority.as_str()),
                ("127.0.0.1:81", "127.0.0.1:81")
            );
            assert!(!format!("{request:?}").contains("dG9t"), "{request:?}");
            let mut values = request.headers.into_iter().filter(|header| *header.name() == AUTHORIZATION);
            let value = values.next().and_then(|header| header.value().constant());
            assert!(values.next().is_none());
            value
        };
        let mut template = RequestTemplate::default();
        for (url, expected) in [
            // tom:a@b
            ("http://tom:a%40b@127.0.0.1:81/", Some("Basic dG9tOmFAYg==")),
            ("tom:a%40b@127.0.0.1:81", Some("Basic dG9tOmFAYg==")),
            // tom:
            ("http://tom@127.0.0.1:81/", Some("Basic dG9tOg==")),
            ("http://127.0.0.1:81/", None),
        ] {
            assert_eq!(authorization(url, &template).as_deref(), expected, "{url}");
        }
        template.headers = vec![Header::new("authorization", "Bearer x").unwrap()];
        assert_eq!(authorization("http://tom:b@127.0.0.1:81/", &template).as_deref(), Some("Bearer x"));
    }
}
