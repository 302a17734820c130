//! Simulates the control plane of one session, and renders the session's messages as lines.

use super::messages::{
    Any, Cluster, ConfigSource, DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest,
    DiscoveryResponse, EdsClusterConfig, Empty, Filter, FilterChain, HttpConnectionManager, Listener, Named,
    Node, Rds, Resource, RouteConfiguration, VirtualHost,
};
use crate::xds::{
    Event, Mark, MarkId, Marks, Outbox, ProxyKind, ProxySpec, Receiver, ResourceType, Session, Store,
    StreamBroken, XdsVariant,
};
use prost::Message;
use std::sync::Arc;
use std::time::Instant;

pub(super) const MESSAGE_LIMIT_BYTES: u64 = 1 << 20;

/// A session with its context.
pub(super) struct Play {
    pub(super) session: Session,
    pub(super) store: Store,
    pub(super) marks: Marks,
    pub(super) events: Vec<Event>,
    pub(super) out: Outbox,
    /// Size of the pieces in which messages arrive.
    pub(super) piece: usize,
}

/// A sidecar's identity, for tests to modify.
pub(super) fn spec(kind: ProxyKind) -> ProxySpec {
    ProxySpec {
        kind,
        name: "web-0".to_owned(),
        namespace: "shop".to_owned(),
        address: [10, 0, 0, 1].into(),
        service_account: "web".to_owned(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        node: "node-1".to_owned(),
        cluster_id: "Kubernetes".to_owned(),
        istio_version: "1.31.0".to_owned(),
        dns_capture: false,
        on_demand: false,
        demands: Vec::new(),
    }
}

impl Play {
    pub(super) fn new(kind: ProxyKind, variant: XdsVariant) -> Self {
        Self::with_spec(spec(kind), variant)
    }

    pub(super) fn with_spec(spec: ProxySpec, variant: XdsVariant) -> Self {
        Self {
            session: Session::new(Arc::new(spec), variant),
            store: Store::new(),
            marks: Marks::new(),
            events: Vec::new(),
            out: Outbox::new(),
            piece: usize::MAX,
        }
    }

    pub(super) fn connect(&mut self) -> Vec<String> {
        self.session.connected(&self.store, &mut self.out);
        self.sent()
    }

    pub(super) fn disconnect(&mut self) {
        self.session.disconnected(&mut self.store);
    }

    /// Opens a mark and has the session expect it.
    pub(super) fn expect(&mut self, mark: Mark) -> MarkId {
        let id = self.marks.open(mark);
        self.session.expect(id);
        id
    }

    /// Delivers a response, all at the same moment.
    pub(super) fn answer(&mut self, response: impl Into<Vec<u8>>) -> Vec<String> {
        self.bytes(&response.into()).expect("a response that does not end the stream");
        self.sent()
    }

    pub(super) fn bytes(&mut self, body: &[u8]) -> Result<(), StreamBroken> {
        let at = Instant::now();
        let mut receiver = Receiver {
            store: &mut self.store,
            marks: &self.marks,
            events: &mut self.events,
            message_limit_bytes: MESSAGE_LIMIT_BYTES,
        };
        self.session.message_start(body.len() as u64, &mut receiver)?;
        for piece in body.chunks(self.piece.min(body.len().max(1))) {
            self.session.receive(piece, at, &mut receiver)?;
        }
        self.session.message_end(at, &mut receiver, &mut self.out)
    }

    /// Calls the session with a receiver; the stream must continue.
    pub(super) fn with_receiver(
        &mut self,
        call: impl FnOnce(&mut Session, &mut Receiver<'_>, Instant) -> Result<(), StreamBroken>,
    ) {
        let mut receiver = Receiver {
            store: &mut self.store,
            marks: &self.marks,
            events: &mut self.events,
            message_limit_bytes: MESSAGE_LIMIT_BYTES,
        };
        call(&mut self.session, &mut receiver, Instant::now()).expect("a stream that goes on");
    }

    /// Ends the message being received.
    pub(super) fn finish(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        self.with_receiver(|session, receiver, at| session.message_end(at, receiver, &mut out));
    }

    /// Requests since the last call.
    pub(super) fn sent(&mut self) -> Vec<String> {
        let show = match self.session.variant() {
            XdsVariant::Delta => show_delta,
            XdsVariant::StateOfTheWorld => show_state_of_the_world,
        };
        let sent = self.out.bodies().map(show).collect();
        self.out.clear();
        sent
    }

    /// The node of the first request when connecting.
    pub(super) fn node(&mut self) -> Node {
        self.session.connected(&self.store, &mut self.out);
        let body = self.out.bodies().next().expect("a first request").to_vec();
        self.out.clear();
        let node = match self.session.variant() {
            XdsVariant::Delta => DeltaDiscoveryRequest::decode(&body[..]).expect("a request").node,
            XdsVariant::StateOfTheWorld => DiscoveryRequest::decode(&body[..]).expect("a request").node,
        };
        node.expect("a node in the first request")
    }

    pub(super) fn arrived(&self) -> Vec<MarkId> {
        let arrived = self.events.iter().filter_map(|event| match event {
            Event::Arrived { mark, .. } => Some(*mark),
            _ => None,
        });
        arrived.collect()
    }

    pub(super) fn violations(&self) -> Vec<&'static str> {
        let violations = self.events.iter().filter_map(|event| match event {
            Event::Violation { kind, .. } => Some(kind.name()),
            _ => None,
        });
        violations.collect()
    }
}

fn short(url: &str) -> &str {
    ResourceType::from_url(url.as_bytes()).map_or(url, |resource_type| resource_type.name())
}

fn list(label: &str, mut names: Vec<String>) -> String {
    names.sort();
    if names.is_empty() { String::new() } else { format!(" {label}{}", names.join(" ")) }
}

fn show_delta(body: &[u8]) -> String {
    let request = DeltaDiscoveryRequest::decode(body).expect("a DeltaDiscoveryRequest");
    let held = request.held.iter().map(|(name, version)| format!("{name}={version}"));
    let mut line = short(&request.type_url).to_owned();
    line += &request.node.map_or(String::new(), |node| format!(" node:{}", node.id));
    line += &list("+", request.subscribe);
    line += &list("-", request.unsubscribe);
    line += &list("held:", held.collect());
    line += &if request.nonce.is_empty() { String::new() } else { format!(" ack:{}", request.nonce) };
    line += &request.error.map_or(String::new(), |error| format!(" nack:{}", error.message));
    line
}

fn show_state_of_the_world(body: &[u8]) -> String {
    let request = DiscoveryRequest::decode(body).expect("a DiscoveryRequest");
    let mut line = short(&request.type_url).to_owned();
    line += &request.node.map_or(String::new(), |node| format!(" node:{}", node.id));
    line += &list("", request.names);
    line += &if request.version.is_empty() { String::new() } else { format!(" version:{}", request.version) };
    line += &if request.nonce.is_empty() { String::new() } else { format!(" ack:{}", request.nonce) };
    line += &request.error.map_or(String::new(), |error| format!(" nack:{}", error.message));
    line
}

/// A resource with its name and version.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) resource_type: ResourceType,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) value: Vec<u8>,
}

fn item(resource_type: ResourceType, name: &str, value: &impl Message) -> Item {
    Item { resource_type, name: name.to_owned(), version: String::new(), value: value.encode_to_vec() }
}

impl Item {
    pub(super) fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    fn any(&self) -> Any {
        Any { type_url: self.resource_type.url().to_owned(), value: self.value.clone() }
    }
}

/// A response of a type in the delta variant.
pub(super) fn delta(resource_type: ResourceType, nonce: &str, items: &[Item], removed: &[&str]) -> Vec<u8> {
    let resource = |item: &Item| Resource {
        version: item.version.clone(),
        resource: Some(item.any()),
        name: item.name.clone(),
        aliases: Vec::new(),
    };
    let response = DeltaDiscoveryResponse {
        system_version: "system".to_owned(),
        resources: items.iter().map(resource).collect(),
        type_url: resource_type.url().to_owned(),
        nonce: nonce.to_owned(),
        removed: removed.iter().map(|name| (*name).to_owned()).collect(),
    };
    response.encode_to_vec()
}

/// A response of a type in the state-of-the-world variant. Its version is `v-` followed by its nonce.
pub(super) fn world(resource_type: ResourceType, nonce: &str, items: &[Item]) -> Vec<u8> {
    let response = DiscoveryResponse {
        version: format!("v-{nonce}"),
        resources: items.iter().map(Item::any).collect(),
        type_url: resource_type.url().to_owned(),
        nonce: nonce.to_owned(),
    };
    response.encode_to_vec()
}

/// A config source that refers to the aggregated stream.
#[expect(clippy::unnecessary_wraps, reason = "the type of the fields that it is for")]
pub(super) fn aggregated() -> Option<ConfigSource> {
    Some(ConfigSource { service: None, aggregated: Some(Empty {}) })
}

/// A config source that refers to another service.
#[expect(clippy::unnecessary_wraps, reason = "the type of the fields that it is for")]
pub(super) fn elsewhere() -> Option<ConfigSource> {
    Some(ConfigSource { service: Some(Empty {}), aggregated: None })
}

/// A cluster whose endpoints come over EDS, under another name if that is not empty.
pub(super) fn cluster(name: &str, service_name: &str) -> Item {
    let eds = EdsClusterConfig { source: aggregated(), service_name: service_name.to_owned() };
    let cluster =
        Cluster { name: name.to_owned(), discovery_type: 3, eds: Some(eds), transport_socket: None };
    item(ResourceType::Clusters, name, &cluster)
}

/// A cluster with static endpoints.
pub(super) fn static_cluster(name: &str) -> Item {
    let cluster = Cluster { name: name.to_owned(), discovery_type: 0, eds: None, transport_socket: None };
    item(ResourceType::Clusters, name, &cluster)
}

/// A resource of which only the name matters.
pub(super) fn named(resource_type: ResourceType, name: &str, content: &str) -> Item {
    let value = Named { name: name.to_owned(), content: content.to_owned() };
    item(resource_type, name, &value)
}

/// Endpoints.
pub(super) fn endpoints(name: &str) -> Item {
    named(ResourceType::Endpoints, name, "10.0.0.2")
}

/// A virtual host with one route.
pub(super) fn routes(name: &str) -> Item {
    route_configuration(name, &[1])
}

/// Virtual hosts with these numbers of routes.
pub(super) fn route_configuration(name: &str, routes: &[usize]) -> Item {
    let route = Named { name: "route".to_owned(), content: "/".to_owned() };
    let host = |(place, routes): (usize, &usize)| VirtualHost {
        name: format!("host-{place}"),
        domains: vec![format!("host-{place}.example"), format!("host-{place}")],
        routes: vec![route.clone(); *routes],
    };
    let virtual_hosts = routes.iter().enumerate().map(host).collect();
    item(ResourceType::Routes, name, &RouteConfiguration { name: name.to_owned(), virtual_hosts })
}

/// A listener.
pub(super) fn listener(listener: &Listener) -> Item {
    item(ResourceType::Listeners, &listener.name, listener)
}

/// A filter chain whose HTTP connection manager refers to routes.
pub(super) fn http_chain(routes: &str, http_filters: Vec<Filter>) -> FilterChain {
    let typed_config = Some(connection_manager(routes, http_filters));
    let filter = Filter { name: "http".to_owned(), typed_config, config_discovery: None };
    FilterChain { filters: vec![filter], transport_socket: None }
}

/// An HTTP connection manager that refers to routes.
pub(super) fn connection_manager(routes: &str, http_filters: Vec<Filter>) -> Any {
    let rds = Some(Rds { source: aggregated(), name: routes.to_owned() });
    let manager = HttpConnectionManager { stat_prefix: "test".to_owned(), rds, http_filters };
    let url = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    Any { type_url: format!("type.googleapis.com/{url}"), value: manager.encode_to_vec() }
}

/// A listener whose chains refer to routes.
pub(super) fn http_listener(name: &str, routes: &[&str]) -> Item {
    let filter_chains = routes.iter().map(|routes| http_chain(routes, Vec::new())).collect();
    listener(&Listener {
        name: name.to_owned(),
        filter_chains,
        api_listener: None,
        default_filter_chain: None,
    })
}
