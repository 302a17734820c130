//! Edges with separate counters, and with shared ones.

use experiment::Protocol;
use experiment::environment::SentLoad;
use mesh::envoy::hop::{Hop, Layer};
use mesh::proof::Evidence;
use mesh::proof::edge::{Edge, EdgeProxy, Replica, Sent, prove_edges};
use results::PathProof;
use std::collections::BTreeMap;

const TLS: bool = true;

fn outbound(callee: &str) -> Evidence {
    Hop::outbound(Layer::for_protocol(Protocol::Http1), 8080, format!("outbound|8080||{callee}"))
        .evidence(TLS)
}

fn inbound() -> Evidence {
    Hop::inbound(Layer::for_protocol(Protocol::Http1), 8080).evidence(TLS)
}

/// Counters of a sidecar: inbound requests, and requests forwarded to each callee.
fn sidecar(name: &str, received: u64, calls: &[(&str, u64)]) -> Replica {
    let mut after = BTreeMap::new();
    let mut count = |name: String, by: u64| *after.entry(name).or_insert(7) += by;
    if received > 0 {
        count("http.inbound_0.0.0.0_8080.downstream_rq_total".to_owned(), received);
        count("http.inbound_0.0.0.0_8080.downstream_cx_total".to_owned(), 4);
        count("listener.0.0.0.0_15006.ssl.handshake".to_owned(), 4);
        count("cluster.inbound|8080||.upstream_rq_total".to_owned(), received);
    }
    for (callee, requests) in calls {
        count("http.outbound_0.0.0.0_8080.downstream_rq_total".to_owned(), *requests);
        count("http.outbound_0.0.0.0_8080.downstream_cx_total".to_owned(), 4);
        count(format!("cluster.outbound|8080||{callee}.upstream_rq_total"), *requests);
        count(format!("cluster.outbound|8080||{callee}.upstream_cx_total"), 4);
        count(format!("cluster.outbound|8080||{callee}.ssl.handshake"), 4);
    }
    let before = after.keys().map(|name| (name.clone(), 7)).collect();
    Replica { name: name.to_owned(), before, after: Ok(after) }
}

/// Proof of edges between sidecars, each given by caller, callee and requests.
fn prove(sidecars: &[(&str, &[Replica])], edges: &[(&str, &str, u64)]) -> PathProof {
    let evidence: Vec<[Evidence; 2]> = edges.iter().map(|(_, to, _)| [outbound(to), inbound()]).collect();
    let replicas = |name: &str| {
        let (_, replicas) = sidecars.iter().find(|(known, _)| *known == name).expect("it has a sidecar");
        replicas.iter().collect::<Vec<_>>()
    };
    let edges: Vec<Edge<'_>> = edges
        .iter()
        .zip(&evidence)
        .map(|((from, to, requests), [near, far])| Edge {
            from,
            to,
            sent: Sent::Load(SentLoad { requests: *requests, request_bytes: Some(70.0) }),
            service: Vec::new(),
            proxies: vec![
                EdgeProxy { name: from, side: None, evidence: near, spans: None, replicas: replicas(from) },
                EdgeProxy { name: to, side: None, evidence: far, spans: None, replicas: replicas(to) },
            ],
        })
        .collect();
    prove_edges(&edges)
}

/// A tier: a calls b1 and b2, which both call c.
const TIER: [(&str, &str, u64); 4] =
    [("a", "b1", 1000), ("a", "b2", 1000), ("b1", "c", 1000), ("b2", "c", 1000)];

fn tier(a: &[(&str, u64)], b1: Replica, received_by_c: u64) -> PathProof {
    let (a, b1) = ([sidecar("a", 0, a)], [b1]);
    let (b2, c) = ([sidecar("b2", 1000, &[("c", 1000)])], [sidecar("c", received_by_c, &[])]);
    prove(&[("a", &a), ("b1", &b1), ("b2", &b2), ("c", &c)], &TIER)
}

fn unproven(proof: &PathProof) -> Vec<String> {
    let edges = proof.edges.iter().filter(|edge| !edge.proven);
    edges.map(|edge| format!("{} to {}", edge.from, edge.to)).collect()
}

#[test]
fn shared_listener_is_checked_against_sum_of_its_edges() {
    let proof = tier(&[("b1", 1000), ("b2", 1000)], sidecar("b1", 1000, &[("c", 1000)]), 2000);
    assert!(proof.proven, "{:?}", proof.reasons);
    let received: Vec<(&str, u64, u64)> = proof
        .proxies
        .iter()
        .map(|proxy| (proxy.name.as_str(), proxy.requests_received, proxy.requests_expected))
        .collect();
    let expected =
        [("a", 2000, 2000), ("b1", 1000, 1000), ("b2", 1000, 1000), ("b1", 1000, 1000), ("c", 2000, 2000)];
    assert_eq!(received[..5], expected);
    assert_eq!(proof.edges.len(), 4);
    assert!(proof.hops.iter().any(|hop| hop.from == "b1" && hop.to == "c"));
}

#[test]
fn bypassed_sidecar_is_charged_to_its_edge_only() {
    let proof = tier(&[("b1", 1000), ("b2", 1000)], sidecar("b1", 1000, &[]), 1000);
    assert_eq!(unproven(&proof), ["b1 to c"]);
    assert_eq!(proof.reasons[0], "edge b1 → c: b1 saw 0 of 1000 requests: traffic did not pass it");
    assert!(
        proof.reasons.iter().any(|reason| reason.starts_with("edge b1 → c: c saw 1000 of 2000 requests"))
    );
}

#[test]
fn edge_of_shared_caller_is_identified_by_forwarded_requests() {
    let proof = tier(&[("b1", 500), ("b2", 1000)], sidecar("b1", 500, &[("c", 1000)]), 2000);
    assert_eq!(unproven(&proof), ["a to b1"]);
    assert!(
        proof.reasons.iter().any(|reason| reason
            == "edge a → b1: a forwarded 500 of 1000 requests: part of the traffic did not pass it"),
        "{:?}",
        proof.reasons
    );
}

#[test]
fn shortfall_only_at_shared_listener_leaves_all_its_edges_unproven() {
    let proof = tier(&[("b1", 1000), ("b2", 1000)], sidecar("b1", 1000, &[("c", 1000)]), 1500);
    assert_eq!(unproven(&proof), ["b1 to c", "b2 to c"]);
    assert!(
        proof.reasons[0].starts_with("edges b1 → c, b2 → c: c saw 1500 of 2000 requests"),
        "{:?}",
        proof.reasons
    );
}

#[test]
fn replicas_are_summed_and_unreadable_one_is_named() {
    let client = [sidecar("client-proxy", 0, &[("server", 900)])];
    let server = [sidecar("server-proxy-1", 500, &[]), sidecar("server-proxy-2", 400, &[])];
    let of =
        |server: &[Replica]| prove(&[("client", &client), ("server", server)], &[("client", "server", 900)]);
    let proof = of(&server);
    assert!(proof.proven && proof.edges.is_empty(), "{:?}", proof.reasons);
    assert_eq!(proof.proxies[1].requests_received, 900);
    let [first, mut second] = server;
    second.after = Err("no answer within 5000 ms".to_owned());
    assert_eq!(
        of(&[first, second]).reasons,
        ["server did not report its counters: server-proxy-2: no answer within 5000 ms"]
    );
}
