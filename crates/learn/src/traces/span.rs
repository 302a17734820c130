//! A span with interned names: the workload that recorded it, and the workload or host at its other end.

use super::formats::Raw;
use crate::is_grpc_error;
use crate::labels::service_names;
use crate::parties::{Callee, Interner, Name, Party, TooMuch, UNKNOWN};

/// Maximum number of names that endpoints may take; further ones count as `/`.
const MAX_ENDPOINT_NAMES: usize = 50_000;
/// Length from which a part of a path that has a digit is an identity.
const MIN_IDENTITY_LENGTH: usize = 8;
/// Maximum length of a part of a path.
const MAX_PART_LENGTH: usize = 40;
/// Names of spans that name no endpoint.
const METHODS: [&str; 7] = ["get", "head", "post", "put", "patch", "delete", "options"];
/// Kinds of proxies by which Istio's `node_id` begins; the third is `router~`.
const SIDECAR: &str = "sidecar~";
const WAYPOINT: &str = "waypoint~";

/// Role of a span.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Server,
    Client,
    /// Receives messages that its parent does not wait for.
    Consumer,
    Producer,
    Internal,
    Unknown,
}

/// A span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) id: u64,
    /// 0 without a parent.
    pub(super) parent: u64,
    /// Nanoseconds since 1970.
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) party: Party,
    /// Callee that a client's span names, or caller that a server's names.
    pub(super) peer: Option<Callee>,
    pub(super) endpoint: Name,
    pub(super) kind: Kind,
    pub(super) is_error: bool,
    pub(super) is_grpc: bool,
    /// True for spans of sidecars, which stand for their application.
    pub(super) is_sidecar: bool,
    /// True for spans of any proxy of Istio.
    pub(super) is_proxy: bool,
    /// Bytes; not a number if the span has none.
    pub(super) request_bytes: f32,
    pub(super) response_bytes: f32,
}

impl Kind {
    pub(super) fn is_served(self) -> bool {
        matches!(self, Self::Server | Self::Consumer)
    }
}

impl Span {
    pub(super) fn new(raw: &Raw, names: &mut Interner) -> Result<Self, TooMuch> {
        let get = |name: &str| raw.attribute(name);
        let node = get("node").unwrap_or_default();
        let mut kind = kind(if raw.kind.is_empty() { get("kind").unwrap_or_default() } else { &raw.kind });
        let host = host(raw);
        let mut party = party(raw, node, names)?;
        let mut peer = None;
        if node.starts_with(WAYPOINT)
            && let Some((namespace, name)) = host.and_then(service_names)
        {
            // A waypoint stands for the service behind it.
            kind = Kind::Server;
            party = Party { namespace: names.name(Some(namespace))?, workload: names.name(Some(name))? };
        } else if kind.is_served() {
            let caller = get("downstream").filter(|caller| !["-", ""].contains(caller));
            let caller = caller.map(|caller| split_service(caller, true));
            if let Some((namespace, name)) = caller {
                let party = Party { namespace: names.name(namespace)?, workload: names.name(Some(name))? };
                peer = Some(Callee::Workload(party));
            }
        } else if let Some(host) = host {
            let host = names.name(Some(host))?;
            peer = (host != UNKNOWN).then_some(Callee::Host(host));
        }
        let bytes =
            |name: &str| get(name).and_then(|text| text.parse::<f32>().ok()).filter(|bytes| *bytes >= 0.0);
        let status = get("status").and_then(|text| text.parse::<u16>().ok());
        let has_error = get("error").is_some_and(|text| text != "false");
        let grpc = get("grpc").and_then(|text| text.parse::<u8>().ok());
        Ok(Self {
            id: raw.id,
            parent: raw.parent,
            start: raw.start,
            end: raw.end,
            party,
            peer,
            endpoint: names.endpoint(&endpoint(raw), MAX_ENDPOINT_NAMES),
            kind,
            // Clients also mark statuses of 4xx as errors.
            is_error: status.map_or(raw.is_error || has_error, |status| status == 0 || status >= 500)
                || grpc.is_some_and(is_grpc_error),
            is_grpc: grpc.is_some() || get("rpc") == Some("grpc"),
            is_sidecar: node.starts_with(SIDECAR),
            is_proxy: !node.is_empty(),
            request_bytes: bytes("request").unwrap_or(f32::NAN),
            response_bytes: bytes("response").unwrap_or(f32::NAN),
        })
    }

    pub(super) fn seconds(&self) -> f64 {
        (self.end - self.start) as f64 / 1e9
    }
}

fn kind(text: &str) -> Kind {
    match text.strip_prefix("span_kind_").unwrap_or(text) {
        "server" => Kind::Server,
        "client" => Kind::Client,
        "consumer" => Kind::Consumer,
        "producer" => Kind::Producer,
        "internal" => Kind::Internal,
        _ => Kind::Unknown,
    }
}

/// Workload that recorded a span. Envoys of Istio name it `cart.shop`, by label and namespace.
fn party(raw: &Raw, node: &str, names: &mut Interner) -> Result<Party, TooMuch> {
    let get = |name: &str| raw.attribute(name);
    let is_proxy = !node.is_empty() || get("component") == Some("proxy");
    let service = get("service").unwrap_or(&raw.service);
    let (of_name, name) = split_service(service, is_proxy);
    // The third part of a node's name is its pod's, with the namespace.
    let of_node = node.split('~').nth(2).and_then(|pod| pod.rsplit_once('.')).map(|(_, namespace)| namespace);
    // Pods without the labels of a canonical service have one of this name.
    let canonical = get("canonical").filter(|name| !["", "unknown"].contains(name));
    Ok(Party {
        namespace: names.name(get("namespace").or(of_node).or(of_name))?,
        workload: names.name(get("deployment").or(canonical).or(Some(name)))?,
    })
}

/// Namespace and name of a service, if it has both.
fn split_service(service: &str, has_namespace: bool) -> (Option<&str>, &str) {
    match service.split_once('.') {
        Some((name, namespace)) if has_namespace && !namespace.contains('.') => (Some(namespace), name),
        _ => (None, service),
    }
}

/// Host at the other end. Names that proxies and libraries know come before those in addresses.
fn host(raw: &Raw) -> Option<&str> {
    let get = |name: &str| raw.attributes.get(name);
    let of_cluster = get("upstream").and_then(|cluster| {
        // `outbound|8080|v1|cart.shop.svc.cluster.local`, with `;` at the end in some versions.
        cluster.split('|').nth(3).map(|host| host.trim_end_matches(';'))
    });
    let peer = Some(raw.peer.as_str());
    let url = get("url").filter(|url| url.contains("://"));
    let found = [of_cluster, get("peer"), peer, get("host"), url, get("address")];
    let host = found.into_iter().flatten().map(|host| of_url(host).0).find(|host| !host.is_empty())?;
    // Without a port; addresses of IPv6 have many colons.
    Some(host.split_once(':').filter(|(_, port)| !port.contains(':')).map_or(host, |(host, _)| host))
}

/// Endpoint: the route, the path, or what the name of the span has from its first `/` on. Identities, and what a URL has around
/// its path, may be secrets.
fn endpoint(raw: &Raw) -> String {
    let get = |name: &str| raw.attributes.get(name);
    let named = || match raw.name.as_str() {
        name if name.contains("://") => of_url(name).1.to_owned(),
        name if METHODS.iter().any(|method| name.eq_ignore_ascii_case(method)) => "/".to_owned(),
        name => name.find('/').map_or_else(|| format!("/{name}"), |start| name[start..].to_owned()),
    };
    let path = get("route").or(get("path")).or(get("url").map(|url| of_url(url).1));
    let path = path.map_or_else(named, str::to_owned);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Authority without credentials, and path with what follows it, of a URL or of an authority alone.
fn of_url(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
    (authority, if path.starts_with('/') { path } else { "/" })
}

/// Part of a path, `*` for identities.
fn part(text: &str) -> &str {
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    let is_number = has_digit && text.chars().all(|c| c.is_ascii_digit());
    let is_identity = has_digit && text.len() >= MIN_IDENTITY_LENGTH || text.contains('@');
    if is_number || is_identity || text.len() > MAX_PART_LENGTH { "*" } else { text }
}
