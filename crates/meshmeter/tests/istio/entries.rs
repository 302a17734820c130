//! A graph with several protocols in two namespaces: without a control plane, and behind each entry.

use crate::trial::{REQUESTS, spec, trial};
use experiment::MeshKind;
use experiment::environment::DeploymentSpec;
use experiment::topology::file;
use lab::environment::LocalLab;
use results::Mode;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Two concurrent calls, one of them to several pods, and a service with two callers in another namespace.
const GRAPH: &str = "
name: graph
services:
  - name: front
    namespace: shop
    endpoints: {/buy: {script: [{parallel: [{call: {service: cart, endpoint: /add}}, {call: depot/stock}]}]}}
  - {name: cart, namespace: shop, protocol: grpc, replicas: 2, endpoints: {/add: {script: [{call: depot/stock}]}}}
  - {name: stock, namespace: depot, protocol: http/2, resources: {limits: {cpu: 2, memory: 200Mi}}}
drivers:
  - {name: generator, target: shop/front, endpoint: /buy}
";

fn graph(mesh: MeshKind, mode: Mode) -> DeploymentSpec {
    let topology = file::read(GRAPH, "graph.yaml").unwrap_or_else(|error| panic!("{}", error.render(false)));
    DeploymentSpec { mesh, topology: Arc::new(topology), ..spec(mode) }
}

fn check(lab: &LocalLab, mesh: MeshKind, mode: Mode, proxies: &[&str]) {
    let trial = trial(lab, &graph(mesh, mode), |_| ());
    assert_eq!(trial.answered(), REQUESTS, "{mode}");
    let evidence = &trial.observation.evidence;
    assert!(evidence.path.proven, "{mode}: {:?}", evidence.path.reasons);
    let served: Vec<_> =
        evidence.services.iter().map(|service| (service.name.as_str(), service.requests)).collect();
    let expected = [("front", REQUESTS), ("cart", REQUESTS), ("stock", 2 * REQUESTS)];
    assert_eq!(served, expected.map(|(name, requests)| (name, Some(requests))), "{mode}");
    let seen: BTreeSet<&str> = evidence.path.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
    assert_eq!(seen, proxies.iter().copied().collect(), "{mode}");
}

const SIDECARS: [&str; 4] = ["shop/client-proxy", "shop/front-proxy", "shop/cart-proxy", "depot/stock-proxy"];

pub fn graphs_run_without_a_control_plane(lab: &LocalLab) {
    check(lab, MeshKind::Envoy, Mode::None, &[]);
    check(lab, MeshKind::Envoy, Mode::Gateway, &["shop/gateway"]);
    check(lab, MeshKind::Envoy, Mode::Sidecar, &SIDECARS);
}

pub fn each_ingress_leads_into_a_graph(lab: &LocalLab) {
    let [_, services @ ..] = SIDECARS;
    check(lab, MeshKind::Istio, Mode::Ingress, &[&["shop/ingress-gateway"][..], &services].concat());
}
