//! Calls through the ztunnel of a node that also carries other pods.

use crate::fixture::{CountedProxy, prove};
use experiment::Protocol;
use experiment::environment::{MutualTls, SentLoad};
use mesh::proof::Accepts;
use mesh::ztunnel::evidence::AmbientCall;
use mesh::ztunnel::metrics::counters;
use results::PathProof;

const REQUESTS: u64 = 400;
const REQUEST_BYTES: u64 = 70;

/// Samples of a connection as ztunnel exposes them for each side, with most labels removed.
fn samples(from: &str, to: &str, security: &str, connections: u64, bytes: u64) -> String {
    let ends: Vec<(&str, &str)> = [from, to].map(|end| end.split_once('/').unwrap()).into();
    let labels = |reporter: &str| {
        format!(
            "reporter=\"{reporter}\",source_workload_namespace=\"{}\",source_canonical_service=\"{}\",\
             destination_workload_namespace=\"{}\",destination_canonical_service=\"{}\",\
             connection_security_policy=\"{security}\"",
            ends[0].0, ends[0].1, ends[1].0, ends[1].1
        )
    };
    let of_side = |reporter| {
        let labels = labels(reporter);
        format!(
            "istio_tcp_connections_opened_total{{{labels}}} {connections}\n\
             istio_tcp_received_bytes_total{{{labels}}} {bytes}\n\
             istio_tcp_sent_bytes_total{{{labels}}} {bytes}\n"
        )
    };
    of_side("source") + &of_side("destination")
}

/// Proof of 400 requests from client to server in namespace `perf`, from this ztunnel's page after the trial.
fn proof(is_shared_with_others: bool, after: &str) -> PathProof {
    proof_since("", is_shared_with_others, after)
}

/// The same, with the ztunnel's page before the trial.
fn proof_since(before: &str, is_shared_with_others: bool, after: &str) -> PathProof {
    let call = AmbientCall {
        protocol: Protocol::Http1,
        from: ("client", "perf"),
        to: ("server", "perf"),
        through_waypoint: false,
        accepts: Accepts::new(8080, MutualTls::Strict),
        is_shared_with_others,
    };
    let (source, destination) = call.evidence();
    let proxy = |side, evidence| CountedProxy {
        name: "ztunnel".to_owned(),
        side: Some(side),
        evidence,
        before: counters(before),
        after: Ok(counters(after)),
    };
    let sent = SentLoad { requests: REQUESTS, request_bytes: Some(REQUEST_BYTES as f64) };
    prove(&[proxy("client", source), proxy("server", destination)], &sent, None)
}

#[test]
fn traffic_of_others_through_ztunnel_is_ignored() {
    let own = samples("perf/client", "perf/server", "mutual_tls", 4, REQUESTS * REQUEST_BYTES);
    let others = [
        samples("shop/client", "shop/server", "mutual_tls", 9, 1 << 20),
        samples("shop/client", "perf/other", "unknown", 9, 1 << 20),
        samples("unknown/unknown", "perf/server", "unknown", 9, 1 << 20),
    ]
    .concat();
    let shared = proof(true, &(own.clone() + &others));
    assert!(shared.proven, "{:?}", shared.reasons);
    assert_eq!(shared.proxies.iter().map(|proxy| proxy.tls_handshakes).collect::<Vec<_>>(), [4, 4]);
    // In a lab there is no other traffic: any plaintext connection belongs to the experiment.
    let alone = proof(false, &(own + &others));
    assert!(alone.reasons.iter().all(|reason| reason.contains("in plaintext")), "{:?}", alone.reasons);
    assert!(!alone.proven);
    let without_own = proof(true, &others);
    assert!(without_own.reasons[0].contains("saw 0 of 400 requests"), "{:?}", without_own.reasons);
}

/// A ztunnel forgets pods that are gone, so that their counters begin anew.
#[test]
fn counters_of_others_may_fall_and_are_not_recorded() {
    let own = samples("perf/client", "perf/server", "mutual_tls", 4, REQUESTS * REQUEST_BYTES);
    let others = |bytes| samples("shop/client", "shop/server", "mutual_tls", 9, bytes);
    let shared = proof_since(&others(2000), true, &(own.clone() + &others(1000)));
    assert!(shared.proven, "{:?}", shared.reasons);
    let recorded = shared.proxies.iter().flat_map(|proxy| proxy.counters.keys());
    assert!(recorded.into_iter().all(|name| name.contains("@perf>perf")), "{:?}", shared.proxies);
    let alone = proof_since(&others(2000), false, &(own + &others(1000)));
    assert!(alone.reasons[0].contains("its counters fell"), "{:?}", alone.reasons);
}

#[test]
fn plaintext_connection_of_call_is_reported() {
    let encrypted = samples("perf/client", "perf/server", "mutual_tls", 3, 300 * REQUEST_BYTES);
    let plain = samples("perf/client", "perf/server", "unknown", 1, 100 * REQUEST_BYTES);
    let proof = proof(true, &(encrypted + &plain));
    let reason = "ztunnel at the client passed connections in plaintext, though mutual TLS is claimed";
    assert!(proof.reasons.iter().any(|known| known == reason), "{:?}", proof.reasons);
}
