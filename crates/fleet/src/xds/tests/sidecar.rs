//! Exchanges of a sidecar.

use super::messages::ValueKind;
use super::play::{
    Item, Play, cluster, delta, endpoints, http_listener, named, routes, spec, static_cluster, world,
};
use crate::xds::{Event, ProxyKind, ResourceType, XdsVariant};

use ResourceType::{Clusters, Endpoints, Listeners, NameTables, Routes};

const NONE: [&str; 0] = [];

fn completions(play: &Play) -> usize {
    play.events.iter().filter(|event| matches!(event, Event::Complete { .. })).count()
}

/// A sidecar with one cluster, one listener and one route.
fn settled(variant: XdsVariant) -> Play {
    let mut play = Play::new(ProxyKind::Sidecar, variant);
    play.connect();
    let respond = |resource_type, nonce: &str, item: Item| match variant {
        XdsVariant::Delta => delta(resource_type, nonce, &[item], &[]),
        XdsVariant::StateOfTheWorld => world(resource_type, nonce, &[item]),
    };
    play.answer(respond(Clusters, "c1", cluster("a", "")));
    play.answer(respond(Endpoints, "e1", endpoints("a").version("7")));
    play.answer(respond(Listeners, "l1", http_listener("web", &["80"])));
    play.answer(respond(Routes, "r1", routes("80")));
    assert!(play.session.is_complete());
    play
}

#[test]
fn delta_sidecar_subscribes_in_envoy_order() {
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::Delta);
    assert_eq!(play.connect(), ["cds node:sidecar~10.0.0.1~web-0.shop~shop.svc.cluster.local"]);
    let clusters = [cluster("a", ""), cluster("b", "b-endpoints"), static_cluster("c")];
    assert_eq!(play.answer(delta(Clusters, "c1", &clusters, &[])), ["eds +a b-endpoints", "cds ack:c1"]);
    assert_eq!(play.answer(delta(Endpoints, "e1", &[endpoints("a")], &[])), ["eds ack:e1"]);
    let rest = play.answer(delta(Endpoints, "e2", &[endpoints("b-endpoints")], &[]));
    assert_eq!(rest, ["lds", "eds ack:e2"]);
    let listeners = [http_listener("x", &["80", "81"]), http_listener("y", &["80"])];
    assert_eq!(play.answer(delta(Listeners, "l1", &listeners, &[])), ["rds +80 81", "lds ack:l1"]);
    assert!(!play.session.is_complete());
    assert_eq!(play.session.missing(&play.store), Some((Routes, Some("80".to_owned()))));
    assert_eq!(play.answer(delta(Routes, "r1", &[routes("81"), routes("80")], &[])), ["rds ack:r1"]);
    assert!(play.session.is_complete());
    assert_eq!((completions(&play), play.violations()), (1, vec![]));
}

#[test]
fn state_of_the_world_sidecar_subscribes_in_envoy_order() {
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::StateOfTheWorld);
    assert_eq!(play.connect(), ["cds node:sidecar~10.0.0.1~web-0.shop~shop.svc.cluster.local"]);
    let clusters = [cluster("a", ""), cluster("b", "b-endpoints"), static_cluster("c")];
    let requests = play.answer(world(Clusters, "c1", &clusters));
    assert_eq!(requests, ["eds a b-endpoints", "cds version:v-c1 ack:c1"]);
    let requests = play.answer(world(Endpoints, "e1", &[endpoints("a"), endpoints("b-endpoints")]));
    assert_eq!(requests, ["lds", "eds a b-endpoints version:v-e1 ack:e1"]);
    let requests = play.answer(world(Listeners, "l1", &[http_listener("x", &["80"])]));
    assert_eq!(requests, ["rds 80", "lds version:v-l1 ack:l1"]);
    assert_eq!(play.answer(world(Routes, "r1", &[routes("80")])), ["rds 80 version:v-r1 ack:r1"]);
    assert_eq!((completions(&play), play.violations()), (1, vec![]));
}

#[test]
fn sidecar_without_endpoints_subscribes_to_listeners_at_once() {
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::Delta);
    play.connect();
    let requests = play.answer(delta(Clusters, "c1", &[static_cluster("c")], &[]));
    assert_eq!(requests, ["lds", "cds ack:c1"]);
}

#[test]
fn agent_requests_name_table_after_listeners_and_never_resumes_it() {
    let mut spec = spec(ProxyKind::Sidecar);
    spec.dns_capture = true;
    let mut play = Play::with_spec(spec, XdsVariant::Delta);
    play.connect();
    let requests = play.answer(delta(Clusters, "c1", &[static_cluster("c")], &[]));
    assert_eq!(requests, ["lds", "nds", "cds ack:c1"]);
    let mut table = named(NameTables, "", "names");
    table.name.clear();
    assert_eq!(play.answer(delta(NameTables, "n1", &[table], &[])), ["nds ack:n1"]);
    assert_eq!(play.violations(), NONE);
    play.disconnect();
    let requests = play.connect();
    assert_eq!(requests[1..], ["lds", "nds"]);
}

#[test]
fn new_cluster_withholds_ack_until_endpoints_arrive() {
    let mut play = settled(XdsVariant::Delta);
    assert_eq!(play.answer(delta(Clusters, "c2", &[cluster("b", "")], &[])), ["eds +b"]);
    let requests = play.answer(delta(Endpoints, "e2", &[endpoints("b")], &[]));
    assert_eq!(requests, ["cds ack:c2", "eds ack:e2"]);
}

#[test]
fn changed_cluster_is_acknowledged_at_once() {
    let mut play = settled(XdsVariant::Delta);
    assert_eq!(play.answer(delta(Clusters, "c2", &[cluster("a", "")], &[])), ["cds ack:c2"]);
}

#[test]
fn unreferenced_names_are_unsubscribed() {
    let mut play = settled(XdsVariant::Delta);
    assert_eq!(play.answer(delta(Clusters, "c2", &[], &["a"])), ["eds -a", "cds ack:c2"]);
    let listeners = [http_listener("web", &["81"])];
    assert_eq!(play.answer(delta(Listeners, "l2", &listeners, &[])), ["rds +81 -80", "lds ack:l2"]);
    assert_eq!((play.session.held(Endpoints), play.session.held(Routes)), (0, 0));
    // The control plane may have sent it before it read the request.
    assert_eq!(play.answer(delta(Endpoints, "e2", &[endpoints("a")], &[])), ["eds ack:e2"]);
    assert_eq!((play.session.held(Endpoints), play.violations()), (0, vec![]));
}

#[test]
fn state_of_the_world_unsubscribes_by_omission() {
    let mut play = settled(XdsVariant::StateOfTheWorld);
    let requests = play.answer(world(Clusters, "c2", &[cluster("b", "")]));
    assert_eq!(requests, ["eds b version:v-e1 ack:e1"], "clusters are acknowledged once b is warm");
    let requests = play.answer(world(Endpoints, "e2", &[endpoints("b")]));
    assert_eq!(requests, ["cds version:v-c2 ack:c2", "eds b version:v-e2 ack:e2"]);
    let requests = play.answer(world(Listeners, "l2", &[]));
    assert_eq!(requests, ["rds version:v-r1 ack:r1", "lds version:v-l2 ack:l2"]);
}

#[test]
fn partial_endpoints_keep_others_in_state_of_the_world() {
    let mut play = settled(XdsVariant::StateOfTheWorld);
    play.answer(world(Clusters, "c2", &[cluster("a", ""), cluster("b", "")]));
    play.answer(world(Endpoints, "e2", &[endpoints("b")]));
    assert_eq!(play.session.held(Endpoints), 2);
}

#[test]
fn delta_resumes_with_held_versions() {
    let mut play = settled(XdsVariant::Delta);
    play.disconnect();
    assert!(!play.session.is_complete());
    let node = "node:sidecar~10.0.0.1~web-0.shop~shop.svc.cluster.local";
    let requests = play.connect();
    let expected = [
        format!("cds {node} held:a="),
        "eds +a held:a=7".to_owned(),
        "lds held:web=".to_owned(),
        "rds +80 held:80=".to_owned(),
    ];
    assert_eq!(requests, expected);
    for (resource_type, nonce) in [(Clusters, "c"), (Endpoints, "e"), (Listeners, "l"), (Routes, "r")] {
        assert!(!play.session.is_complete());
        assert_eq!(play.answer(delta(resource_type, nonce, &[], &[])).len(), 1);
    }
    assert_eq!((play.session.is_complete(), completions(&play)), (true, 2));
}

#[test]
fn state_of_the_world_resumes_with_accepted_versions() {
    let mut play = settled(XdsVariant::StateOfTheWorld);
    play.disconnect();
    let node = "node:sidecar~10.0.0.1~web-0.shop~shop.svc.cluster.local";
    let expected = [
        format!("cds {node} version:v-c1"),
        "eds a version:v-e1".to_owned(),
        "lds version:v-l1".to_owned(),
        "rds 80 version:v-r1".to_owned(),
    ];
    assert_eq!(play.connect(), expected);
}

#[test]
fn stream_that_ends_within_message_discards_it() {
    let mut play = settled(XdsVariant::Delta);
    let body = delta(Clusters, "c2", &[cluster("b", "")], &[]);
    let mut receiver = crate::xds::Receiver {
        store: &mut play.store,
        marks: &play.marks,
        events: &mut play.events,
        message_limit_bytes: 1 << 20,
    };
    play.session.message_start(body.len() as u64, &mut receiver).expect("a short message");
    play.session.receive(&body[..20], std::time::Instant::now(), &mut receiver).expect("its beginning");
    play.disconnect();
    assert_eq!(play.connect().len(), 4);
    assert_eq!(play.session.held(Clusters), 1);
}

#[test]
fn node_has_metadata_of_pilot_agent() {
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::Delta);
    let node = play.node();
    assert_eq!((&node.cluster[..], &node.user_agent_name[..]), ("web.shop", "envoy"));
    assert_eq!(node.extensions.len(), 516, "as many as Envoy 1.40 has");
    let router = node.extensions.iter().find(|extension| extension.name == "envoy.filters.http.router");
    let router = router.expect("Envoy's router");
    assert_eq!(router.category, "envoy.filters.http");
    assert_eq!(router.type_urls, ["envoy.extensions.filters.http.router.v3.Router"]);
    let fields = node.metadata.expect("metadata").fields;
    let text = |name: &str| match &fields[name].kind {
        Some(ValueKind::Text(text)) => text.clone(),
        other => panic!("{name} is {other:?}"),
    };
    for (name, value) in [
        ("CLUSTER_ID", "Kubernetes"),
        ("INSTANCE_IPS", "10.0.0.1"),
        ("ISTIO_VERSION", "1.31.0"),
        ("NAMESPACE", "shop"),
        ("NODE_NAME", "node-1"),
        ("SERVICE_ACCOUNT", "web"),
        ("WORKLOAD_NAME", "web"),
    ] {
        assert_eq!(text(name), value);
    }
    let Some(ValueKind::Map(labels)) = &fields["LABELS"].kind else { panic!("labels are a map") };
    assert_eq!(labels.fields["app"].kind, Some(ValueKind::Text("web".to_owned())));
}
