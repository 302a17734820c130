//! Calls through the ztunnel of a node that also carries other pods.

use crate::fixture::{CountedProxy, prove};
use experiment::Protocol;
use experiment::environment::SentLoad;
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
    proof_of(AmbientCall { is_shared_with_others, ..CALL }, before, after)
}

const CALL: AmbientCall<'_> = AmbientCall {
    protocol: Protocol::Http1,
    from: ("client", "perf"),
    to: ("server", "perf"),
    in_mesh: [true, true],
    through_waypoint: false,
    accepts: Accepts { port: 8080, plaintext: false },
    is_shared_with_others: false,
    is_beside_plaintext: false,
};

fn proof_of(call: AmbientCall<'_>, before: &str, after: &str) -> PathProof {
    let (source, destination) = call.evidence();
    let proxy = |side, evidence| CountedProxy {
        name: "ztunnel".to_owned(),
        side: Some(side),
        evidence,
        before: counters(before),
        after: Ok(counters(after)),
    };
    let sent = SentLoad { requests: REQUESTS, request_bytes: Some(REQUEST_BYTES as f64) };
    let source = source.map(|evidence| proxy("client", evidence));
    let destination = destination.map(|evidence| proxy("server", evidence));
    prove(&source.into_iter().chain(destination).collect::<Vec<_>>(), &sent, None)
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

/// A call with one end outside the mesh: the ztunnel at the other end alone, which passes it on in plaintext.
#[test]
fn call_across_the_border_of_the_mesh_is_plaintext_at_its_only_ztunnel() {
    let all = REQUESTS * REQUEST_BYTES;
    for (in_mesh, side) in [([false, true], "server"), ([true, false], "client")] {
        let call = AmbientCall { in_mesh, is_beside_plaintext: true, ..CALL };
        let proof = |page: &str| proof_of(call, "", page);
        let plain = proof(&samples("perf/client", "perf/server", "unknown", 4, all));
        assert!(plain.proven, "{side}: {:?}", plain.reasons);
        let [ztunnel] = &plain.proxies[..] else { panic!("{side}: {:?}", plain.proxies) };
        assert_eq!((ztunnel.requests_received, ztunnel.tls_handshakes), (REQUESTS, 0));
        assert!(!ztunnel.tls_expected && plain.hops.iter().all(|hop| !hop.by_hbone), "{:?}", plain.hops);

        let [reason, no_tls] = [
            format!("ztunnel at the {side} saw 0 of 400 requests: traffic did not pass it"),
            format!("ztunnel at the {side} used mutual TLS with a peer that is outside the mesh"),
        ];
        let encrypted = proof(&samples("perf/client", "perf/server", "mutual_tls", 4, all));
        assert_eq!(encrypted.reasons, [reason.as_str(), &no_tls], "{side}");
        // The connections are older than the trial, and carry all requests.
        let older = samples("perf/client", "perf/server", "mutual_tls", 4, 0);
        let later = samples("perf/client", "perf/server", "mutual_tls", 4, all);
        assert_eq!(proof_of(call, &older, &later).reasons, [reason.as_str()], "{side}");
        let half = |security| samples("perf/client", "perf/server", security, 2, all / 2);
        let mixed = proof(&(half("unknown") + &half("mutual_tls")));
        let part =
            format!("ztunnel at the {side} saw 200 of 400 requests: part of the traffic did not pass it");
        assert_eq!(mixed.reasons, [part, no_tls], "{side}");
        // Of a caller that ztunnel does not know, and of another callee.
        for (from, to) in [("unknown/unknown", "perf/server"), ("perf/client", "perf/other")] {
            assert_eq!(proof(&samples(from, to, "unknown", 4, all)).reasons, [reason.as_str()], "{side}");
        }
    }
    let call = AmbientCall { in_mesh: [false, true], ..CALL };
    assert_eq!(call.evidence().1.unwrap().accepts, Some(CALL.accepts), "it is claimed of the callee");
    assert!(AmbientCall { in_mesh: [false, false], ..CALL }.evidence() == (None, None));
}

#[test]
fn plaintext_across_the_border_is_none_of_calls_inside() {
    let own = samples("perf/client", "perf/server", "mutual_tls", 4, REQUESTS * REQUEST_BYTES);
    let border = samples("perf/outside", "perf/server", "unknown", 4, 1 << 20);
    let beside = AmbientCall { is_beside_plaintext: true, ..CALL };
    let proven = proof_of(beside, "", &(own.clone() + &border));
    assert!(proven.proven, "{:?}", proven.reasons);
    assert!(!proof_of(CALL, "", &(own.clone() + &border)).proven, "nothing crosses the border");
    let plain = samples("perf/client", "perf/server", "unknown", 1, 0);
    let reasons = proof_of(beside, "", &(own + &border + &plain)).reasons;
    assert!(reasons.iter().all(|reason| reason.contains("passed connections in plaintext")), "{reasons:?}");
    assert_eq!(reasons.len(), 2, "at either side");
}
