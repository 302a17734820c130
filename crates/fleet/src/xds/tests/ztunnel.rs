//! Exchanges of a ztunnel.

use super::play::{Play, delta, named, spec};
use crate::xds::{ProxyKind, ResourceType, XdsVariant};

use ResourceType::{Addresses, Authorizations};

const NODE: &str = "node:ztunnel~10.0.0.1~web-0.shop~shop.svc.cluster.local";

#[test]
fn ztunnel_subscribes_to_everything_and_resumes_with_versions_held() {
    let mut play = Play::new(ProxyKind::Ztunnel, XdsVariant::StateOfTheWorld);
    assert_eq!(play.session.variant(), XdsVariant::Delta);
    assert_eq!(play.connect(), [format!("addresses {NODE}"), format!("authorizations {NODE}")]);
    let pods = ["Kubernetes//Pod/shop/a", "Kubernetes//Pod/shop/b"];
    let items = pods.map(|pod| named(Addresses, pod, "10.0.0.2").version("1"));
    assert_eq!(play.answer(delta(Addresses, "a1", &items, &[])), ["addresses ack:a1"]);
    assert!(!play.session.is_complete());
    assert_eq!(play.answer(delta(Authorizations, "z1", &[], &[])), ["authorizations ack:z1"]);
    assert!(play.session.is_complete());
    let changed = named(Addresses, pods[0], "10.0.0.3").version("2");
    play.answer(delta(Addresses, "a2", &[changed], &[pods[1]]));
    play.disconnect();
    let requests = play.connect();
    assert_eq!(requests[0], format!("addresses {NODE} held:{}=2", pods[0]));
}

#[test]
fn ztunnel_on_demand_requests_by_name() {
    let mut spec = spec(ProxyKind::Ztunnel);
    spec.on_demand = true;
    spec.demands = vec!["/10.0.0.2".to_owned()];
    let mut play = Play::with_spec(spec, XdsVariant::Delta);
    let expected = [
        format!("addresses {NODE} +* -*"),
        "addresses +/10.0.0.2".to_owned(),
        format!("authorizations {NODE}"),
    ];
    assert_eq!(play.connect(), expected);
    play.answer(delta(Authorizations, "z1", &[], &[]));
    play.answer(delta(Addresses, "a1", &[], &[]));
    assert!(!play.session.is_complete(), "the address was not answered");
    let items = [named(Addresses, "Kubernetes//Pod/shop/a", "10.0.0.2").version("1")];
    play.answer(delta(Addresses, "a2", &items, &[]));
    assert!(play.session.is_complete());
    play.session.demand(["shop/web.shop.svc.cluster.local"].into_iter(), &mut play.out);
    assert_eq!(play.sent(), ["addresses +shop/web.shop.svc.cluster.local"]);
    play.disconnect();
    let requests = play.connect();
    assert_eq!(requests[0], format!("addresses {NODE} +* -* held:Kubernetes//Pod/shop/a=1"));
    assert_eq!((requests.len(), play.violations().len()), (2, 0));
}
