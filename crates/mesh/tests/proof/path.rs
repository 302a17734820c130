//! Proof of a single edge by requests, for proxies that read them.

use crate::fixture::{CountedProxy, prove, sent};
use mesh::envoy::hop::{Hop, Layer};
use results::HopProtocol;
use std::collections::BTreeMap;

const CLUSTER: &str = "outbound|8080||server.default.svc.cluster.local";
const LAYER: Layer = Layer::L7 { received: HopProtocol::Http1, forwarded: HopProtocol::Http1 };
const OUTBOUND: &str = "cluster.outbound|8080||server.default.svc.cluster.local";

fn proxy(name: &str, hop: &Hop, rises: &[(&str, u64)]) -> CountedProxy {
    let before: BTreeMap<_, _> = rises.iter().map(|(name, _)| ((*name).to_owned(), 7)).collect();
    let after = rises.iter().map(|(name, rise)| ((*name).to_owned(), 7 + rise)).collect();
    let evidence = hop.evidence(true);
    CountedProxy { name: name.to_owned(), side: None, evidence, before, after: Ok(after) }
}

fn client(requests: u64, handshakes: u64, retries: u64) -> CountedProxy {
    proxy(
        "client-proxy",
        &Hop::outbound(LAYER, 8080, CLUSTER.to_owned()),
        &[
            ("http.outbound_0.0.0.0_8080.downstream_rq_total", requests),
            ("http.outbound_0.0.0.0_8080.downstream_cx_total", 4),
            (&format!("{OUTBOUND}.ssl.handshake"), handshakes),
            (&format!("{OUTBOUND}.upstream_cx_total"), 4),
            (&format!("{OUTBOUND}.upstream_rq_retry"), retries),
            (&format!("{OUTBOUND}.upstream_rq_total"), requests + retries),
        ],
    )
}

fn server(requests: u64, handshakes: u64, refused: u64) -> CountedProxy {
    proxy(
        "server-proxy",
        &Hop::inbound(LAYER, 8080),
        &[
            ("http.inbound_0.0.0.0_8080.downstream_rq_total", requests),
            ("http.inbound_0.0.0.0_8080.downstream_cx_total", 4),
            ("listener.0.0.0.0_15006.ssl.handshake", handshakes),
            ("listener.0.0.0.0_15006.no_filter_chain_match", refused),
            ("cluster.inbound|8080||.upstream_rq_total", requests),
        ],
    )
}

#[test]
fn requests_seen_by_both_proxies_with_tls_are_proven() {
    let proof = prove(&[client(3000, 4, 0), server(3000, 4, 0)], &sent(3000), None);
    assert!(proof.proven, "{:?}", proof.reasons);
    assert_eq!(proof.proxies[1].requests_received, 3000);
    assert_eq!((proof.proxies[0].tls_handshakes, proof.proxies[1].tls_handshakes), (4, 4));
}

#[test]
fn path_without_proxies_is_proven() {
    let proof = prove(&[], &sent(3000), None);
    assert!(proof.proven && proof.proxies.is_empty() && proof.reasons.is_empty());
}

#[test]
fn only_one_unread_request_per_connection_is_allowed() {
    assert!(prove(&[client(2996, 4, 0), server(2996, 4, 0)], &sent(3000), None).proven);
    let proof = prove(&[client(2995, 4, 0), server(2996, 4, 0)], &sent(3000), None);
    assert_eq!(
        proof.reasons,
        ["client-proxy saw 2995 of 3000 requests: part of the traffic did not pass it"]
    );
}

/// The proxy with a different increase of one counter.
fn changed(mut proxy: CountedProxy, counter: &str, rise: u64) -> CountedProxy {
    let before = proxy.before.get(counter).copied().unwrap_or_default();
    proxy.after.as_mut().unwrap().insert(counter.to_owned(), before + rise);
    proxy
}

#[test]
fn requests_answered_by_proxy_itself_are_reported() {
    let few = |forwarded| changed(server(3000, 4, 0), "cluster.inbound|8080||.upstream_rq_total", forwarded);
    assert!(prove(&[client(3000, 4, 0), few(2996)], &sent(3000), None).proven);
    let refusing = changed(few(1500), "http.inbound_0.0.0.0_8080.downstream_rq_4xx", 1500);
    assert!(prove(&[client(3000, 4, 0), refusing], &sent(3000), None).proven);
    assert_eq!(
        prove(&[client(3000, 4, 0), few(1500)], &sent(3000), None).reasons,
        [
            "server-proxy sent on 1500 of the 3000 requests that it received: it answered others itself, or sent them elsewhere"
        ]
    );
}

#[test]
fn plaintext_connections_among_others_are_reported() {
    let proof = prove(&[client(3000, 2, 0), server(3000, 2, 0)], &sent(3000), None);
    insta::assert_snapshot!(proof.reasons.join("\n"), @r"
    client-proxy opened 4 connections and completed 2 TLS handshakes with its peer: others were in plaintext, though mutual TLS is claimed
    server-proxy took 4 connections and completed 2 TLS handshakes with its peer: others were in plaintext, though mutual TLS is claimed
    ");
    // A connection that was never established had no handshake either.
    let failing = changed(client(3000, 4, 0), &format!("{OUTBOUND}.upstream_cx_total"), 5);
    let failing = changed(failing, &format!("{OUTBOUND}.upstream_cx_connect_fail"), 1);
    assert!(prove(&[failing, server(3000, 4, 0)], &sent(3000), None).proven);
}

#[test]
fn surplus_is_explained_by_retries_of_previous_proxy() {
    assert!(prove(&[client(3000, 4, 5), server(3005, 4, 0)], &sent(3000), None).proven);
    let proof = prove(&[client(3000, 4, 5), server(3006, 4, 0)], &sent(3000), None);
    assert_eq!(
        proof.reasons,
        ["server-proxy saw 1 requests more than were sent: something else uses this path"]
    );
}

#[test]
fn missing_requests_are_explained_by_timeouts_of_previous_proxy() {
    let timeouts = format!("{OUTBOUND}.upstream_rq_timeout");
    let impatient = |given_up: u64| changed(client(3000, 4, 0), &timeouts, given_up);
    assert!(prove(&[impatient(100), server(2900, 4, 0)], &sent(3000), None).proven);
    let proof = prove(&[impatient(100), server(2895, 4, 0)], &sent(3000), None);
    assert_eq!(
        proof.reasons,
        ["server-proxy saw 2895 of 3000 requests: part of the traffic did not pass it"]
    );
    assert!(!prove(&[impatient(3000), server(0, 4, 0)], &sent(3000), None).proven);
}

#[test]
fn traffic_that_bypasses_client_proxy_is_reported() {
    let proof = prove(&[client(0, 0, 0), server(0, 0, 3000)], &sent(3000), None);
    insta::assert_snapshot!(proof.reasons.join("\n"), @r"
    client-proxy saw 0 of 3000 requests: traffic did not pass it
    client-proxy completed no TLS handshake with its peer, though mutual TLS is claimed
    server-proxy saw 0 of 3000 requests: traffic did not pass it
    server-proxy completed no TLS handshake with its peer, though mutual TLS is claimed
    server-proxy refused 3000 connections that were plaintext where its mode requires TLS, or the reverse
    ");
}

#[test]
fn handshake_with_tls_switched_off_is_not_proven() {
    let off = |mut proxy: CountedProxy| {
        proxy.evidence.tls_expected = false;
        proxy
    };
    assert!(prove(&[off(client(30, 0, 0)), off(server(30, 0, 0))], &sent(30), None).proven);
    assert!(!prove(&[off(client(30, 1, 0)), off(server(30, 0, 0))], &sent(30), None).proven);
}

#[test]
fn configuration_rejected_at_any_time_is_not_proven() {
    let mut proxy = client(3000, 4, 0);
    for counters in [&mut proxy.before, proxy.after.as_mut().unwrap()] {
        counters.insert("cluster_manager.cds.update_rejected".to_owned(), 2);
        counters.insert("listener_manager.lds.update_rejected".to_owned(), 0);
    }
    assert_eq!(
        prove(&[proxy], &sent(3000), None).reasons,
        ["client-proxy refused 2 updates of its configuration (cluster_manager.cds.update_rejected)"]
    );
}

#[test]
fn failing_script_is_not_proven() {
    let mut proxy = client(3000, 4, 0);
    let name = "http.outbound_0.0.0.0_8080.lua.errors".to_owned();
    proxy.before.insert(name.clone(), 1);
    proxy.after.as_mut().unwrap().insert(name, 3001);
    assert_eq!(
        prove(&[proxy], &sent(3000), None).reasons,
        ["client-proxy failed to run the Lua script 3000 times"]
    );
}

#[test]
fn unreadable_restarted_or_idle_proxy_is_not_proven() {
    let mut silent = client(3000, 4, 0);
    silent.after = Err("no answer within 5000 ms".to_owned());
    let proof = prove(&[silent], &sent(3000), None);
    assert_eq!(proof.reasons, ["client-proxy did not report its counters: no answer within 5000 ms"]);

    let mut restarted = client(3000, 4, 0);
    restarted.before.insert("listener.0.0.0.0_15001.downstream_cx_total".to_owned(), 9);
    restarted.after.as_mut().unwrap().insert("listener.0.0.0.0_15001.downstream_cx_total".to_owned(), 1);
    assert!(prove(&[restarted], &sent(3000), None).reasons[0].contains("started anew"));

    assert!(!prove(&[client(0, 0, 0)], &sent(0), None).proven);
}
