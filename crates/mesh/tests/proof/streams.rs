//! Proof of a single edge by opaque TCP connections.

use crate::fixture::{CountedProxy, prove, sent, settled};
use mesh::proof::{CountedService, Evidence, Seen, StreamCounters};
use std::collections::BTreeMap;

const BYPASSED: &str = "cluster.PassthroughCluster.upstream_cx_total";

fn counters(rises: &[(&str, u64)]) -> [BTreeMap<String, u64>; 2] {
    let of = |value: &dyn Fn(u64) -> u64| {
        rises.iter().map(|(name, rise)| ((*name).to_owned(), value(*rise))).collect()
    };
    [of(&|_| 7), of(&|rise| 7 + rise)]
}

/// 2000 requests on 4 connections, as counted by a real service.
fn service(requests: u64) -> CountedService {
    let [before, after] = counters(&[
        ("requests", requests),
        ("connections", 4),
        ("bytes_received", 150_096),
        ("bytes_sent", 1_372_000),
    ]);
    CountedService { before, after: Ok(after) }
}

fn carrier(name: &str, connections: u64, sent_bytes: u64) -> CountedProxy {
    let seen = StreamCounters::for_tcp_proxy("outbound|443||external");
    let [before, after] = counters(&[
        (&seen.connections, connections),
        (&seen.received_bytes, 195_352),
        (&seen.sent_bytes, sent_bytes),
    ]);
    let evidence = Evidence::new(Seen::Streams(seen));
    CountedProxy { name: name.to_owned(), side: None, evidence, before, after: Ok(after) }
}

fn reasons(proxies: &[CountedProxy], requests: u64) -> Vec<String> {
    prove(proxies, &sent(2000), Some(&service(requests))).reasons
}

#[test]
fn connections_and_bytes_carried_by_all_proxies_are_proven() {
    let proxies = [carrier("client-proxy", 4, 1_419_709), carrier("egress-gateway", 4, 1_419_709)];
    let proof = prove(&proxies, &sent(2000), Some(&service(2000)));
    assert!(proof.proven, "{:?}", proof.reasons);
    let streams = proof.proxies[1].streams.unwrap();
    assert_eq!((streams.connections, streams.connections_expected), (4, 4));
    assert_eq!(proof.service.unwrap().requests_received, 2000);
}

#[test]
fn missing_connections_bytes_and_requests_are_reported() {
    let near = || carrier("client-proxy", 4, 1_419_709);
    assert_eq!(
        reasons(&[near(), carrier("egress-gateway", 0, 0)], 2000),
        ["egress-gateway carried 0 of 4 connections: traffic did not pass it"]
    );
    assert_eq!(
        reasons(&[carrier("client-proxy", 3, 1_100_000)], 2000),
        ["client-proxy carried 3 of 4 connections: part of the traffic did not pass it"]
    );
    let few_bytes = reasons(&[carrier("client-proxy", 4, 700_000)], 2000);
    assert!(few_bytes[0].ends_with("part of the traffic did not pass it"), "{few_bytes:?}");
    let many_bytes = reasons(&[near(), carrier("egress-gateway", 9, 2_900_000)], 2000);
    assert!(many_bytes[0].ends_with("something else uses this path"), "{many_bytes:?}");
    assert_eq!(reasons(&[near()], 1900), ["server received 1900 requests; its callers sent 2000"]);
    assert!(reasons(&[near()], 2001)[0].ends_with("its callers sent 2000: something else uses it"));
}

/// Responses of one byte: the request for the service's counters is larger than all of them.
#[test]
fn counter_requests_to_service_are_not_missing_bytes() {
    let of_service = |sent_bytes| {
        let rises = [("requests", 300), ("connections", 4), ("bytes_received", 30_049)];
        let [before, after] = counters(&[&rises[..], &[("bytes_sent", sent_bytes)]].concat());
        CountedService { before, after: Ok(after) }
    };
    let proxy = |sent_bytes| {
        let mut proxy = carrier("client-proxy", 4, sent_bytes);
        let Seen::Streams(seen) = &proxy.evidence.seen else { panic!("it carries streams") };
        proxy.after.as_mut().unwrap().insert(seen.received_bytes.clone(), 7 + 30_000);
        proxy
    };
    let asked = of_service(853);
    let proxies = [proxy(300)];
    let proof = prove(&proxies, &sent(300), Some(&asked));
    assert!(proof.proven, "{:?}", proof.reasons);
    assert!(settled(&proxies, &sent(300), Some(&asked)));
    assert!(!prove(&[proxy(300)], &sent(300), Some(&of_service(2_000))).proven);
}

/// As when a server's proxy rejects all traffic that bypasses the client's.
#[test]
fn service_that_nothing_reached_is_reported() {
    let [before, after] = counters(&[("requests", 0), ("connections", 0)]);
    let unreached = CountedService { before, after: Ok(after) };
    let proof = prove(&[carrier("client-proxy", 0, 0)], &sent(2000), Some(&unreached));
    assert_eq!(
        proof.reasons,
        [
            "client-proxy carried no connection: traffic did not pass it",
            "server received 0 requests; its callers sent 2000"
        ]
    );
}

#[test]
fn streams_without_service_counters_are_not_proven() {
    let proxies = [carrier("client-proxy", 4, 1_419_709)];
    assert!(!prove(&proxies, &sent(2000), None).proven);
    let silent = CountedService { after: Err("no answer within 5000 ms".to_owned()), ..service(2000) };
    let proof = prove(&proxies, &sent(2000), Some(&silent));
    assert_eq!(proof.reasons[1], "server did not report its counters: no answer within 5000 ms");
}

#[test]
fn bypassed_proxy_with_connections_is_reported() {
    let idle = |connections| {
        let [before, after] = counters(&[(BYPASSED, connections)]);
        let evidence = Evidence::new(Seen::Nothing(vec![BYPASSED.to_owned()]));
        CountedProxy { name: "client-proxy".to_owned(), side: None, evidence, before, after: Ok(after) }
    };
    assert!(reasons(&[idle(0)], 2000).is_empty());
    assert_eq!(
        reasons(&[idle(4)], 2000),
        ["client-proxy carried 4 connections, though the path leads past it"]
    );
}
