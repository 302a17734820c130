//! Names that gateways and waypoints read from listeners and clusters.

use super::messages::{
    Any, ApiListener, Cluster, CombinedValidationContext, CommonTlsContext, EdsClusterConfig,
    ExtensionConfigSource, Filter, FilterChain, Listener, SdsSecretConfig, TlsContext, TransportSocket,
};
use super::play::{
    Item, Play, aggregated, cluster, connection_manager, delta, elsewhere, endpoints, http_chain, listener,
    route_configuration, routes, static_cluster, world,
};
use crate::xds::{Event, ProxyKind, ResourceType, XdsVariant};
use prost::Message;

use ResourceType::{Clusters, Endpoints, Listeners, Routes, Workloads};

/// A socket with two secrets from the aggregated stream and one from the agent.
fn tls(direction: &str, certificate: &str, authority: &str) -> TransportSocket {
    let secret = |name: &str, source| SdsSecretConfig { name: name.to_owned(), source };
    let common = CommonTlsContext {
        certificates: vec![secret(certificate, aggregated()), secret("default", elsewhere())],
        combined: Some(CombinedValidationContext { secret: Some(secret(authority, aggregated())) }),
    };
    let url = format!("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.{direction}TlsContext");
    let typed_config =
        Some(Any { type_url: url, value: TlsContext { common: Some(common) }.encode_to_vec() });
    TransportSocket { name: "tls".to_owned(), typed_config }
}

fn extension(name: &str) -> Filter {
    let source = Some(ExtensionConfigSource { source: aggregated() });
    Filter { name: name.to_owned(), typed_config: None, config_discovery: source }
}

fn secure_listener() -> Item {
    let chain = FilterChain {
        transport_socket: Some(tls("Downstream", "kubernetes://shop-cert", "kubernetes://shop-cert-cacert")),
        ..http_chain("https.443", vec![extension("wasm")])
    };
    let network = FilterChain { filters: vec![extension("network-filter")], transport_socket: None };
    listener(&Listener {
        name: "0.0.0.0_443".to_owned(),
        filter_chains: vec![chain, network],
        api_listener: Some(ApiListener { listener: Some(connection_manager("api", Vec::new())) }),
        default_filter_chain: Some(http_chain("fallback", Vec::new())),
    })
}

#[test]
fn gateway_requests_everything_that_listener_names() {
    let mut play = Play::new(ProxyKind::Gateway, XdsVariant::Delta);
    assert_eq!(play.connect(), ["cds node:router~10.0.0.1~web-0.shop~shop.svc.cluster.local"]);
    play.answer(delta(Clusters, "c1", &[static_cluster("c")], &[]));
    let requests = play.answer(delta(Listeners, "l1", &[secure_listener()], &[]));
    let expected = [
        "rds +api fallback https.443",
        "sds +kubernetes://shop-cert kubernetes://shop-cert-cacert",
        "ecds +network-filter wasm",
        "lds ack:l1",
    ];
    assert_eq!(requests, expected);
    let answers = [routes("api"), routes("fallback"), routes("https.443")];
    assert_eq!(play.answer(delta(Routes, "r1", &answers, &[])), ["rds ack:r1"]);
    assert!(play.session.is_complete(), "secrets and extensions may be answered with nothing");
}

#[test]
fn routes_of_all_virtual_hosts_are_counted() {
    let mut play = Play::new(ProxyKind::Gateway, XdsVariant::Delta);
    play.connect();
    play.answer(delta(Clusters, "c1", &[static_cluster("c")], &[]));
    play.answer(delta(Listeners, "l1", &[secure_listener()], &[]));
    play.events.clear();
    let answers = [route_configuration("api", &[3, 0, 2]), route_configuration("fallback", &[])];
    play.answer(delta(Routes, "r1", &answers, &[]));
    let Some(Event::Response(response)) = play.events.first() else { panic!("{:?}", play.events) };
    assert_eq!((response.resources, response.routes), (2, 5));
}

#[test]
fn cluster_with_credential_requests_its_secrets() {
    let mut play = Play::new(ProxyKind::Gateway, XdsVariant::StateOfTheWorld);
    play.connect();
    let cluster = Cluster {
        name: "secure".to_owned(),
        discovery_type: 3,
        eds: Some(EdsClusterConfig { source: elsewhere(), service_name: String::new() }),
        transport_socket: Some(tls("Upstream", "kubernetes://client", "kubernetes://client-cacert")),
    };
    let mut item = static_cluster("secure");
    item.value = cluster.encode_to_vec();
    let requests = play.answer(world(Clusters, "c1", &[item]));
    let expected = ["sds kubernetes://client kubernetes://client-cacert", "lds", "cds version:v-c1 ack:c1"];
    assert_eq!(requests, expected, "its endpoints come from elsewhere");
}

#[test]
fn absent_routes_are_no_longer_awaited() {
    let mut play = Play::new(ProxyKind::Gateway, XdsVariant::Delta);
    play.connect();
    play.answer(delta(Clusters, "c1", &[static_cluster("c")], &[]));
    play.answer(delta(Listeners, "l1", &[secure_listener()], &[]));
    play.answer(delta(Routes, "r1", &[routes("api")], &["fallback", "https.443"]));
    assert!(play.session.is_complete());
}

#[test]
fn waypoint_discovers_workloads_in_delta_variant() {
    let mut play = Play::new(ProxyKind::Waypoint, XdsVariant::Delta);
    let node = "node:waypoint~10.0.0.1~web-0.shop~shop.svc.cluster.local";
    assert_eq!(play.connect(), [format!("cds {node}"), "workloads".to_owned()]);
    play.answer(delta(Workloads, "w1", &[], &[]));
    play.answer(delta(Clusters, "c1", &[cluster("a", "")], &[]));
    assert_eq!(play.answer(delta(Endpoints, "e1", &[endpoints("a")], &[])), ["lds", "eds ack:e1"]);
    play.answer(delta(Listeners, "l1", &[], &[]));
    assert!(play.session.is_complete());
    let mut play = Play::new(ProxyKind::Waypoint, XdsVariant::StateOfTheWorld);
    assert_eq!(play.connect(), [format!("cds {node}")]);
}

#[test]
fn config_source_of_cluster_does_not_carry_over_to_next() {
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::Delta);
    play.connect();
    let away = Cluster {
        name: "away".to_owned(),
        discovery_type: 3,
        eds: Some(EdsClusterConfig { source: elsewhere(), service_name: String::new() }),
        transport_socket: None,
    };
    let mut item = static_cluster("away");
    item.value = away.encode_to_vec();
    assert_eq!(play.answer(delta(Clusters, "c1", &[item, cluster("a", "")], &[]))[0], "eds +a");
}
