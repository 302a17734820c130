//! Whether the requests took the path that the mode names: read from the proxies' own counters.
//!
//! Pure: counters before and after in, [`PathProof`] out. Each expected proxy must have received every request that the
//! generator sent and sent it on, must have completed TLS handshakes exactly where mutual TLS is claimed (`forwarded.rs`), and
//! must have taken every configuration that it was sent. What was spoken on each hop must be what is asked (`hops.rs`). Which of its counters say so is its [`Evidence`], whoever configured it.
//!
//! Three ways to see the load, each with its own file for what follows: a proxy that reads requests counts them, and one
//! that has their bytes as they were sent counts those (`requests.rs`); one that carries connections unread is held against what
//! the service at the end of the path counted (`streams.rs`). Which proxy sees what is its `evidence.rs`.

mod evidence;
mod forwarded;
mod hops;
#[cfg(test)]
mod hostile_tests;
mod requests;
mod streams;
mod tracing;

pub use evidence::{Demand, Evidence, Seen, Takes};
pub use forwarded::{Encrypted, SentOn};
pub use hops::{Count, GrpcCounters, Spoken, SpokenSide};
pub use requests::{RequestByteCounters, RequestCounters};
pub use streams::{CountedService, StreamCounters};
pub use tracing::judge_tracing;

use experiment::environment::SentLoad;
use experiment::schema::{PathProof, ProxyProof};
use std::collections::BTreeMap;

/// One proxy of the path and what it counted. Proxies are listed from client to server.
#[derive(Clone, Debug)]
pub struct CountedProxy {
    /// The component.
    pub name: String,
    /// Which end of the path it stands at here; absent where it stands on the path once.
    pub side: Option<&'static str>,
    /// What of its counters tells of the path.
    pub evidence: Evidence,
    /// Its counters before the generator started.
    pub before: BTreeMap<String, u64>,
    /// Its counters after the generator's end; or why they could not be read.
    pub after: Result<BTreeMap<String, u64>, String>,
}

impl CountedProxy {
    /// What it is called where something is wrong.
    fn called(&self) -> String {
        self.side.map_or_else(|| self.name.clone(), |side| format!("{} at the {side}", self.name))
    }
}

/// More than anything counts in a trial: a proxy that says more is taken for one that says this, and no sum of a few ends
/// beyond all numbers.
const MOST_COUNTED: u64 = 1 << 48;

/// What a counter rose by.
fn risen(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>, name: &str) -> u64 {
    let read = |counters: &BTreeMap<String, u64>| counters.get(name).copied().unwrap_or(0);
    read(after).saturating_sub(read(before)).min(MOST_COUNTED)
}

/// How the counters of refused configuration end, whatever kind of configuration it is.
const REJECTED_SUFFIX: &str = ".update_rejected";

/// How the counters of Lua scripts that failed end.
const SCRIPT_ERRORS_SUFFIX: &str = ".lua.errors";

/// Judges the path of one trial by what the generator sent;
/// `service` is what the service counted meanwhile, needed where a proxy carries what it does not read. Without proxies
/// (mode `none`) there is nothing to prove.
#[must_use]
pub fn prove(proxies: &[CountedProxy], sent: &SentLoad, service: Option<&CountedService>) -> PathProof {
    let mut reasons = Vec::new();
    let mut proofs: Vec<ProxyProof> = Vec::new();
    let mut before = requests::Explained::default();
    if sent.requests == 0 && !proxies.is_empty() {
        reasons.push("the generator sent no requests: nothing shows their path".to_owned());
    }
    for proxy in proxies {
        let counters = counted(proxy, &mut reasons);
        let proof = read(proxy, counters, sent, service);
        if proxy.after.is_ok() {
            match &proxy.evidence.seen {
                Seen::Requests(counters) => {
                    requests::judge_read(proxy, &proof, counters, before, &mut reasons);
                    before.add(&proof, counters);
                }
                Seen::RequestBytes(counters) => {
                    requests::judge_bytes(proxy, &proof, counters, before, sent, &mut reasons);
                }
                Seen::Streams(_) => {
                    let nearer = proofs.iter().rev().find(|other| carries(other));
                    streams::judge_carried(&proof, nearer, service, &mut reasons);
                }
                Seen::Nothing(_) => streams::judge_passed_by(&proof, &mut reasons),
            }
            forwarded::judge_sent_on(proxy, &proof, before.given_up, &mut reasons);
            judge_tls(proxy, &proof, &mut reasons);
            forwarded::judge_encrypted(proxy, &proof, before.given_up, &mut reasons);
            judge_demands(proxy, &proof, &mut reasons);
            judge_scripts(proxy, &proof, &mut reasons);
        }
        judge_configuration(proxy, &mut reasons);
        proofs.push(proof);
    }
    if let Some(service) = service {
        streams::judge_service(service, sent.requests, before.retries, &mut reasons);
    }
    let service = service.map(CountedService::proof);
    let hops = hops::judge_hops(proxies, &mut reasons);
    PathProof { proven: reasons.is_empty(), proxies: proofs, reasons, service, tracing: None, hops }
}

/// Whether a proxy carries the trial's connections unread.
fn carries(proof: &ProxyProof) -> bool {
    proof.streams.is_some_and(|streams| streams.connections_expected > 0)
}

/// What the counters rose by. A counter that fell is one of a proxy that started anew: not the one that was asked before.
fn counted(proxy: &CountedProxy, reasons: &mut Vec<String>) -> BTreeMap<String, u64> {
    let after = match &proxy.after {
        Ok(after) => after,
        Err(reason) => {
            reasons.push(format!("{} could not be asked for its counters: {reason}", proxy.called()));
            return BTreeMap::new();
        }
    };
    let mut restarted = false;
    let rises = after
        .iter()
        .map(|(name, after)| {
            let before = proxy.before.get(name).copied().unwrap_or(0);
            restarted |= *after < before;
            (name.clone(), after.saturating_sub(before).min(MOST_COUNTED))
        })
        .collect();
    if restarted {
        reasons.push(format!("{} started anew during the trial: its counters fell", proxy.called()));
    }
    rises
}

fn read(
    proxy: &CountedProxy,
    counters: BTreeMap<String, u64>,
    sent: &SentLoad,
    service: Option<&CountedService>,
) -> ProxyProof {
    let rise = |name: &str| counters.get(name).copied().unwrap_or(0);
    let (requests_received, requests_expected, streams) = match &proxy.evidence.seen {
        Seen::Requests(counters) => (rise(&counters.requests), sent.requests, None),
        Seen::RequestBytes(counters) => (counters.requests(rise, sent), sent.requests, None),
        Seen::Streams(counters) => (0, 0, Some(counters.read(service, rise))),
        Seen::Nothing(counters) => (0, 0, Some(streams::passed_by(counters, rise))),
    };
    ProxyProof {
        name: proxy.name.clone(),
        requests_received,
        requests_expected,
        streams,
        tls_handshakes: proxy.evidence.handshakes.as_deref().map_or(0, rise),
        tls_expected: proxy.evidence.tls_expected,
        takes_plain_text: None,
        counters,
    }
}

fn counter(proof: &ProxyProof, name: &str) -> u64 {
    proof.counters.get(name).copied().unwrap_or(0)
}

fn judge_tls(proxy: &CountedProxy, proof: &ProxyProof, reasons: &mut Vec<String>) {
    let (name, handshakes) = (proxy.called(), proof.tls_handshakes);
    if proof.tls_expected && handshakes == 0 {
        reasons
            .push(format!("{name} completed no TLS handshake with its peer, though mutual TLS is claimed"));
    }
    if !proof.tls_expected && handshakes > 0 {
        reasons
            .push(format!("{name} completed {handshakes} TLS handshakes, though mutual TLS is switched off"));
    }
    let refused = proxy.evidence.refused.as_deref().map_or(0, |name| counter(proof, name));
    if refused > 0 {
        reasons.push(format!("{name} refused {refused} connections that did not come as its mode wants them (plain text for TLS, or the reverse)"));
    }
}

fn judge_demands(proxy: &CountedProxy, proof: &ProxyProof, reasons: &mut Vec<String>) {
    for demand in &proxy.evidence.demands {
        if (counter(proof, &demand.counter) > 0) != demand.rises {
            reasons.push(format!("{} {}", proxy.called(), demand.otherwise));
        }
    }
}

/// Where a script fails, Envoy lets the request go on as if there were none.
fn judge_scripts(proxy: &CountedProxy, proof: &ProxyProof, reasons: &mut Vec<String>) {
    let failures = proof.counters.iter().filter(|(name, _)| name.ends_with(SCRIPT_ERRORS_SUFFIX));
    let failures: u64 = failures.map(|(_, count)| count).sum();
    if failures > 0 {
        reasons.push(format!("{} failed to run the Lua script {failures} times", proxy.called()));
    }
}

/// A proxy that refuses configuration runs with an older one: counted since its start, and none may be.
fn judge_configuration(proxy: &CountedProxy, reasons: &mut Vec<String>) {
    let Ok(after) = &proxy.after else { return };
    for (counter, rejected) in
        after.iter().filter(|(name, count)| name.ends_with(REJECTED_SUFFIX) && **count > 0)
    {
        let name = proxy.called();
        reasons.push(format!("{name} refused {rejected} updates of its configuration ({counter})"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::bootstrap::Position;
    use experiment::Protocol;
    use std::net::{Ipv4Addr, SocketAddrV4};

    const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 3), 8080);

    fn proxy(position: Position, tls_expected: bool, rises: &[(&str, u64)]) -> CountedProxy {
        let name = match position {
            Position::ClientSidecar { .. } => "client-proxy",
            Position::ServerSidecar { .. } => "server-proxy",
            Position::Gateway { .. } => "gateway",
        };
        let before: BTreeMap<_, _> = rises.iter().map(|(name, _)| ((*name).to_owned(), 7)).collect();
        let after = rises.iter().map(|(name, rise)| ((*name).to_owned(), 7 + rise)).collect();
        let evidence = position.evidence(Protocol::Http1, tls_expected);
        CountedProxy { name: name.to_owned(), side: None, evidence, before, after: Ok(after) }
    }

    fn sent(requests: u64) -> SentLoad {
        SentLoad { requests, ..SentLoad::default() }
    }

    fn client(requests: u64, handshakes: u64, retries: u64) -> CountedProxy {
        proxy(
            Position::ClientSidecar { service: SERVICE },
            true,
            &[
                ("http.outbound_0.0.0.0_8080.downstream_rq_total", requests),
                ("http.outbound_0.0.0.0_8080.downstream_cx_total", 4),
                ("cluster.outbound|8080||server.default.svc.cluster.local.ssl.handshake", handshakes),
                ("cluster.outbound|8080||server.default.svc.cluster.local.upstream_cx_total", 4),
                ("cluster.outbound|8080||server.default.svc.cluster.local.upstream_rq_retry", retries),
                (
                    "cluster.outbound|8080||server.default.svc.cluster.local.upstream_rq_total",
                    requests + retries,
                ),
            ],
        )
    }

    fn server(requests: u64, handshakes: u64, refused: u64) -> CountedProxy {
        proxy(
            Position::ServerSidecar { port: 8080 },
            true,
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
    fn every_request_seen_by_both_with_tls_is_proof() {
        let proof = prove(&[client(3000, 4, 0), server(3000, 4, 0)], &sent(3000), None);
        assert!(proof.proven, "{:?}", proof.reasons);
        assert_eq!(proof.proxies[1].requests_received, 3000);
        assert_eq!((proof.proxies[0].tls_handshakes, proof.proxies[1].tls_handshakes), (4, 4));
    }

    #[test]
    fn no_proxies_leave_nothing_to_prove() {
        let proof = prove(&[], &sent(3000), None);
        assert!(proof.proven && proof.proxies.is_empty() && proof.reasons.is_empty());
    }

    #[test]
    fn one_unread_request_a_connection_is_forgiven_and_no_more() {
        assert!(prove(&[client(2996, 4, 0), server(2996, 4, 0)], &sent(3000), None).proven);
        let proof = prove(&[client(2995, 4, 0), server(2996, 4, 0)], &sent(3000), None);
        assert_eq!(
            proof.reasons,
            ["client-proxy saw 2995 of 3000 requests: part of the traffic did not pass it"]
        );
    }

    /// The same proxy with a counter that rose by another number.
    fn changed(mut proxy: CountedProxy, counter: &str, rise: u64) -> CountedProxy {
        let before = proxy.before[counter];
        *proxy.after.as_mut().unwrap().get_mut(counter).unwrap() = before + rise;
        proxy
    }

    #[test]
    fn requests_that_a_proxy_answers_itself_show() {
        let few = |sent_on| changed(server(3000, 4, 0), "cluster.inbound|8080||.upstream_rq_total", sent_on);
        assert!(prove(&[client(3000, 4, 0), few(2996)], &sent(3000), None).proven);
        let mut refusing = few(1500);
        refusing
            .after
            .as_mut()
            .unwrap()
            .insert("http.inbound_0.0.0.0_8080.downstream_rq_4xx".to_owned(), 1500);
        assert!(prove(&[client(3000, 4, 0), refusing], &sent(3000), None).proven);
        assert_eq!(
            prove(&[client(3000, 4, 0), few(1500)], &sent(3000), None).reasons,
            [
                "server-proxy sent on 1500 of the 3000 requests that it received: it answered others itself, or sent them elsewhere"
            ]
        );
    }

    #[test]
    fn connections_in_plain_text_among_others_show() {
        let opened = "cluster.outbound|8080||server.default.svc.cluster.local.upstream_cx_total";
        let proof = prove(&[client(3000, 2, 0), server(3000, 2, 0)], &sent(3000), None);
        insta::assert_snapshot!(proof.reasons.join("\n"), @r"
        client-proxy opened 4 connections and completed 2 TLS handshakes with its peer: others were in plain text, though mutual TLS is claimed
        server-proxy took 4 connections and completed 2 TLS handshakes with its peer: others were in plain text, though mutual TLS is claimed
        ");
        // One that never came about had no handshake either.
        let mut failing = changed(client(3000, 4, 0), opened, 5);
        let failed = opened.replace("cx_total", "cx_connect_fail");
        failing.after.as_mut().unwrap().insert(failed, 1);
        assert!(prove(&[failing, server(3000, 4, 0)], &sent(3000), None).proven);
    }

    #[test]
    fn retries_of_the_proxy_before_explain_a_surplus() {
        assert!(prove(&[client(3000, 4, 5), server(3005, 4, 0)], &sent(3000), None).proven);
        let proof = prove(&[client(3000, 4, 5), server(3006, 4, 0)], &sent(3000), None);
        assert_eq!(
            proof.reasons,
            ["server-proxy saw 1 requests more than were sent: something else uses this path"]
        );
    }

    #[test]
    fn requests_that_the_proxy_before_gave_up_explain_what_is_missing() {
        let impatient = |given_up: u64| {
            let mut client = client(3000, 4, 0);
            let name =
                "cluster.outbound|8080||server.default.svc.cluster.local.upstream_rq_timeout".to_owned();
            client.after.as_mut().unwrap().insert(name, given_up);
            client
        };
        assert!(prove(&[impatient(100), server(2900, 4, 0)], &sent(3000), None).proven);
        let proof = prove(&[impatient(100), server(2895, 4, 0)], &sent(3000), None);
        assert_eq!(
            proof.reasons,
            ["server-proxy saw 2895 of 3000 requests: part of the traffic did not pass it"]
        );
        assert!(!prove(&[impatient(3000), server(0, 4, 0)], &sent(3000), None).proven);
    }

    #[test]
    fn traffic_past_the_client_proxy_is_named() {
        let proof = prove(&[client(0, 0, 0), server(0, 0, 3000)], &sent(3000), None);
        insta::assert_snapshot!(proof.reasons.join("\n"), @r"
        client-proxy saw 0 of 3000 requests: traffic did not pass it
        client-proxy completed no TLS handshake with its peer, though mutual TLS is claimed
        server-proxy saw 0 of 3000 requests: traffic did not pass it
        server-proxy completed no TLS handshake with its peer, though mutual TLS is claimed
        server-proxy refused 3000 connections that did not come as its mode wants them (plain text for TLS, or the reverse)
        ");
    }

    #[test]
    fn tls_that_was_switched_off_must_be_off() {
        let off = |mut proxy: CountedProxy| {
            proxy.evidence.tls_expected = false;
            proxy
        };
        assert!(prove(&[off(client(30, 0, 0)), off(server(30, 0, 0))], &sent(30), None).proven);
        assert!(!prove(&[off(client(30, 1, 0)), off(server(30, 0, 0))], &sent(30), None).proven);
    }

    #[test]
    fn configuration_that_was_refused_at_any_time_is_no_proof() {
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
    fn a_script_that_fails_is_no_proof() {
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
    fn silence_a_restart_and_no_requests_prove_nothing() {
        let mut silent = client(3000, 4, 0);
        silent.after = Err("no answer within 5000 ms".to_owned());
        let proof = prove(&[silent], &sent(3000), None);
        assert_eq!(
            proof.reasons,
            ["client-proxy could not be asked for its counters: no answer within 5000 ms"]
        );

        let mut restarted = client(3000, 4, 0);
        restarted.before.insert("listener.0.0.0.0_15001.downstream_cx_total".to_owned(), 9);
        restarted.after.as_mut().unwrap().insert("listener.0.0.0.0_15001.downstream_cx_total".to_owned(), 1);
        assert!(prove(&[restarted], &sent(3000), None).reasons[0].contains("started anew"));

        assert!(!prove(&[client(0, 0, 0)], &sent(0), None).proven);
    }
}
