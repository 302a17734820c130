//! Proof of a path by connections and bytes, for proxies that carry requests unread: a client's own TLS, raw TCP, ztunnel.
//! If the service has every request, and each proxy carried as many connections as the service accepted, with at least the
//! bytes that the service moved and as many as the proxy before it, the requests went through all of them.

use super::counted::CountedService;
use super::counters::COUNTERS_REQUEST_BYTES;
use super::delta::allowance;
use super::side::{Side, manner};
use experiment::schema::{ProxyProof, StreamProof};

/// Bytes that proxies next to each other may differ by, as a share of all: what lay in sockets when the generator ended.
const BYTES_APART_FRACTION: f64 = 0.01;
/// The same with little traffic: a proxy that reads server names may or may not count a connection's first TLS message.
const BYTES_APART_PER_CONNECTION: u64 = 4096;

/// Connections that a proxy carried although the path leads past it.
pub(super) fn passed_by(counters: &[String], rise: impl Fn(&str) -> u64) -> StreamProof {
    let connections = counters.iter().map(|name| rise(name)).max().unwrap_or(0);
    StreamProof { connections, ..StreamProof::default() }
}

pub(super) fn check_passed_by(proof: &ProxyProof, reasons: &mut Vec<String>) {
    let connections = proof.streams.map_or(0, |streams| streams.connections);
    if connections > 0 {
        reasons
            .push(format!("{} carried {connections} connections, though the path leads past it", proof.name));
    }
}

pub(super) fn check_carried(side: &Side<'_>, reasons: &mut Vec<String>) {
    let Side { proof, nearer, service, .. } = *side;
    let (name, Some(streams)) = (&proof.name, proof.streams) else { return };
    let Some(served) = service.filter(|service| service.after.is_ok()).map(CountedService::proof) else {
        reasons.push(format!(
            "{name} does not read requests, and the service could not be asked for its own count"
        ));
        return;
    };
    let (connections, expected) = (streams.connections, streams.connections_expected);
    if connections == 0 && expected == 0 {
        reasons.push(format!("{name} carried no connection: traffic did not pass it"));
        return;
    }
    if connections < expected {
        reasons
            .push(format!("{name} carried {connections} of {expected} connections: {}", manner(connections)));
        return;
    }
    // At the generator's end each connection may have an answer under way.
    let each = served.sent_bytes.checked_div(served.requests_received).unwrap_or(0);
    let under_way = each.saturating_mul(expected);
    let missing = under_way.saturating_add(COUNTERS_REQUEST_BYTES);
    if streams.received_bytes.saturating_add(missing) < served.received_bytes
        || streams.sent_bytes.saturating_add(missing) < served.sent_bytes
    {
        reasons.push(format!(
            "{name} carried {} bytes to the service and {} back, which moved {} and {} itself: part of the traffic did not pass it",
            streams.received_bytes, streams.sent_bytes, served.received_bytes, served.sent_bytes
        ));
    }
    let Some((nearer, before)) = nearer.and_then(|nearer| Some((&nearer.name, nearer.streams?))) else {
        return;
    };
    for (direction, bytes, bytes_before) in [
        ("to the service", streams.received_bytes, before.received_bytes),
        ("to the client", streams.sent_bytes, before.sent_bytes),
    ] {
        let share = (bytes.max(bytes_before) as f64 * BYTES_APART_FRACTION) as u64;
        let framing = BYTES_APART_PER_CONNECTION.saturating_mul(expected);
        if bytes.abs_diff(bytes_before) > share.saturating_add(under_way).saturating_add(framing) {
            reasons.push(format!(
                "{name} carried {bytes} bytes {direction} and {nearer} {bytes_before}: something else uses this path"
            ));
        }
    }
}

pub(super) fn check_service(service: &CountedService, sent: u64, retries: u64, reasons: &mut Vec<String>) {
    if let Err(reason) = &service.after {
        reasons.push(format!("the service could not be asked for its counters: {reason}"));
        return;
    }
    let served = service.proof();
    let received = served.requests_received;
    if received.saturating_add(allowance(sent, served.connections)) < sent {
        reasons.push(format!("the service counted {received} of {sent} requests"));
    } else if let surplus @ 1.. = received.saturating_sub(sent).saturating_sub(retries) {
        reasons.push(format!(
            "the service counted {surplus} requests more than were sent: something else uses it"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::counted::CountedProxy;
    use super::super::counters::StreamCounters;
    use super::super::evidence::{Evidence, Seen};
    use super::super::path::prove;
    use super::*;
    use experiment::environment::SentLoad;
    use std::collections::BTreeMap;

    const BYPASSED: &str = "cluster.PassthroughCluster.upstream_cx_total";

    fn counters(rises: &[(&str, u64)]) -> [BTreeMap<String, u64>; 2] {
        let of = |value: &dyn Fn(u64) -> u64| {
            rises.iter().map(|(name, rise)| ((*name).to_owned(), value(*rise))).collect()
        };
        [of(&|_| 7), of(&|rise| 7 + rise)]
    }

    /// 2000 requests on 4 connections, as a real service counted them.
    fn service(requests: u64) -> CountedService {
        let [before, after] = counters(&[
            ("requests", requests),
            ("connections", 4),
            ("bytes_received", 150_096),
            ("bytes_sent", 1_372_000),
        ]);
        CountedService { before, after: Ok(after) }
    }

    fn sent(requests: u64) -> SentLoad {
        SentLoad { requests, ..SentLoad::default() }
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
    fn every_connection_and_byte_carried_by_all_is_proof() {
        let proxies = [carrier("client-proxy", 4, 1_419_709), carrier("egress-gateway", 4, 1_419_709)];
        let proof = prove(&proxies, &sent(2000), Some(&service(2000)));
        assert!(proof.proven, "{:?}", proof.reasons);
        let streams = proof.proxies[1].streams.unwrap();
        assert_eq!((streams.connections, streams.connections_expected), (4, 4));
        assert_eq!(proof.service.unwrap().requests_received, 2000);
    }

    #[test]
    fn connections_bytes_and_requests_that_are_missing_show() {
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
        assert_eq!(reasons(&[near()], 1900), ["the service counted 1900 of 2000 requests"]);
        assert!(reasons(&[near()], 2001)[0].starts_with("the service counted 1 requests more"));
    }

    /// Answers of a byte each: the question for the service's counters is more than all of them.
    #[test]
    fn what_the_service_was_asked_is_nothing_that_a_proxy_missed() {
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
        let CountedProxy { evidence, before, after, .. } = &proxies[0];
        assert!(evidence.has_settled(before, after.as_ref().unwrap(), &sent(300), Some(&asked)));
        assert!(!prove(&[proxy(300)], &sent(300), Some(&of_service(2_000))).proven);
    }

    /// As when a server's proxy refuses all that goes past the client's.
    #[test]
    fn a_service_that_nothing_reached_excuses_nobody() {
        let [before, after] = counters(&[("requests", 0), ("connections", 0)]);
        let unreached = CountedService { before, after: Ok(after) };
        let proof = prove(&[carrier("client-proxy", 0, 0)], &sent(2000), Some(&unreached));
        assert_eq!(
            proof.reasons,
            [
                "client-proxy carried no connection: traffic did not pass it",
                "the service counted 0 of 2000 requests"
            ]
        );
    }

    #[test]
    fn without_the_services_count_nothing_is_proven() {
        let proxies = [carrier("client-proxy", 4, 1_419_709)];
        assert!(!prove(&proxies, &sent(2000), None).proven);
        let silent = CountedService { after: Err("no answer within 5000 ms".to_owned()), ..service(2000) };
        let proof = prove(&proxies, &sent(2000), Some(&silent));
        assert_eq!(
            proof.reasons[1],
            "the service could not be asked for its counters: no answer within 5000 ms"
        );
    }

    #[test]
    fn a_proxy_that_the_path_leads_past_must_have_carried_nothing() {
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
}
