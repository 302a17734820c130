//! Whether the requests took the path that the mode names: read from the proxies' own counters.
//!
//! Pure: counters before and after in, [`PathProof`] out. Each expected proxy must have received every request that the
//! generator sent, must have completed TLS handshakes exactly where mutual TLS is claimed, and must have taken every
//! configuration that it was sent. Which of its counters say so is its [`Evidence`], whoever configured it.
//!
//! A proxy that carries connections without reading the requests in them is held against what the service counted:
//! `streams.rs`. Where another proxy changes the requests on their way, as a waypoint between two ztunnels does, that says
//! nothing: the bytes of such a path are held against the generator's own, so that they too say how many requests passed;
//! behind the proxy that changes them, only that there were enough.
//!
//! Equality has two honest exceptions. A generator that is stopped leaves at most one request on each connection that no
//! proxy reads any more, so a few may be missing. And a proxy may retry, as a mesh does, so the one behind it may see
//! more; the retries are counted too. With bytes there is a third: what a protocol says once on each connection.

mod streams;
mod tracing;

pub use streams::{CountedService, StreamCounters};
pub use tracing::judge_tracing;

use experiment::environment::SentLoad;
use experiment::schema::{PathProof, ProxyProof};
use std::collections::BTreeMap;

/// Missing requests are never forgiven beyond this share of all, or [`FORGIVEN_AT_LEAST`] where that is more:
/// one of many connections that went past a proxy must show.
const FORGIVEN_FRACTION: f64 = 0.01;
const FORGIVEN_AT_LEAST: u64 = 16;

/// What a connection carries beside requests (HTTP/2's preface, settings and first headers), in requests.
const CONNECTION_IN_REQUESTS: u64 = 16;

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

/// Which counters of a proxy tell of the path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Evidence {
    /// What it sees of the traffic.
    pub seen: Seen,
    /// TLS handshakes with the peer proxy; absent where it has no peer.
    pub handshakes: Option<String>,
    /// Whether mutual TLS with the peer is claimed.
    pub tls_expected: bool,
    /// What it takes for this port of the application; absent where nothing is claimed of that.
    pub takes: Option<Takes>,
    /// Connections that it refused since they came as no filter chain wants them; absent where it has no such listener.
    pub refused: Option<String>,
    /// What else must show, or must not.
    pub demands: Vec<Demand>,
}

/// What a proxy is to take for a port of the application.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Takes {
    /// The port.
    pub port: u16,
    /// Whether it takes plain text, be it beside mutual TLS or alone.
    pub plain_text: bool,
}

/// What a proxy sees of the traffic on the path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Seen {
    /// Every request.
    Requests(RequestCounters),
    /// The bytes of every request.
    RequestBytes(RequestByteCounters),
    /// Connections with bytes in them.
    Streams(StreamCounters),
    /// Nothing: the path leads past it, and these counters of connections must not rise.
    Nothing(Vec<String>),
}

/// Counters of a proxy that reads requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestCounters {
    /// The requests that arrived at the listener of the path.
    pub requests: String,
    /// The connections that they came on: each may leave one request unread.
    pub connections: String,
    /// The requests that this proxy sent again.
    pub retries: String,
    /// The requests that it chose to trace.
    pub traced: String,
}

/// Counters of a proxy that does not read requests, but has their bytes as they were sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestByteCounters {
    /// Bytes from client to server.
    pub bytes: String,
    /// The connections that they came on.
    pub connections: String,
    /// Whether a proxy before it has added to them: then there must be enough, and more says nothing.
    pub added_to: bool,
}

impl RequestByteCounters {
    /// How many requests the bytes make.
    fn requests(&self, rise: impl Fn(&str) -> u64, sent: &SentLoad) -> u64 {
        let Some(each) = sent.request_bytes.filter(|bytes| *bytes > 0.0) else { return 0 };
        let requests = (rise(&self.bytes) as f64 / each).round() as u64;
        if self.added_to { requests.min(sent.requests) } else { requests }
    }
}

/// A counter that must rise in a trial, or must not.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Demand {
    /// Its name.
    pub counter: String,
    /// Whether it must.
    pub rises: bool,
    /// What it means where it did not keep to that, after the proxy's name.
    pub otherwise: &'static str,
}

impl Evidence {
    /// The evidence of an HTTP proxy, by the prefix of its connection manager's statistics and the name of the cluster
    /// that requests leave through; of mutual TLS it tells nothing.
    #[must_use]
    pub fn of_http(connection_manager: &str, cluster: &str) -> Self {
        Self::of(Seen::Requests(RequestCounters {
            requests: format!("http.{connection_manager}.downstream_rq_total"),
            connections: format!("http.{connection_manager}.downstream_cx_total"),
            retries: format!("cluster.{cluster}.upstream_rq_retry"),
            traced: format!("http.{connection_manager}.tracing.random_sampling"),
        }))
    }

    /// The evidence of a proxy that sees this of the traffic; of mutual TLS it tells nothing.
    #[must_use]
    pub fn of(seen: Seen) -> Self {
        Self { seen, handshakes: None, tls_expected: false, takes: None, refused: None, demands: Vec::new() }
    }

    /// Whether the proxy has counted all that it will count of a trial: the generator may be gone while its last
    /// requests still lie in sockets.
    #[must_use]
    pub fn has_settled(
        &self,
        before: &BTreeMap<String, u64>,
        after: &BTreeMap<String, u64>,
        sent: &SentLoad,
        service: Option<&CountedService>,
    ) -> bool {
        let rise = |name: &str| risen(before, after, name);
        match &self.seen {
            Seen::Requests(counters) => rise(&counters.requests) >= sent.requests,
            Seen::RequestBytes(counters) => counters.requests(rise, sent) >= sent.requests,
            Seen::Streams(counters) => service.is_none_or(|service| counters.hold(service, &rise)),
            Seen::Nothing(_) => true,
        }
    }
}

impl CountedProxy {
    /// What it is called where something is wrong.
    fn called(&self) -> String {
        self.side.map_or_else(|| self.name.clone(), |side| format!("{} at the {side}", self.name))
    }
}

/// What a counter rose by.
fn risen(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>, name: &str) -> u64 {
    let read = |counters: &BTreeMap<String, u64>| counters.get(name).copied().unwrap_or(0);
    read(after).saturating_sub(read(before))
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
    let mut retries_before = 0;
    if sent.requests == 0 && !proxies.is_empty() {
        reasons.push("the generator sent no requests: nothing shows their path".to_owned());
    }
    for proxy in proxies {
        let counters = counted(proxy, &mut reasons);
        let proof = read(proxy, counters, sent, service);
        if proxy.after.is_ok() {
            match &proxy.evidence.seen {
                Seen::Requests(counters) => {
                    let connections = counter(&proof, &counters.connections);
                    judge_count(proxy, &proof, connections, retries_before, &mut reasons);
                    retries_before += counter(&proof, &counters.retries);
                }
                Seen::RequestBytes(counters) => {
                    let connections = counter(&proof, &counters.connections);
                    let once = CONNECTION_IN_REQUESTS * connections + most_forgiven(sent.requests);
                    judge_count(proxy, &proof, connections, retries_before + once, &mut reasons);
                }
                Seen::Streams(_) => {
                    let nearer = proofs.iter().rev().find(|other| carries(other));
                    streams::judge_carried(&proof, nearer, service, &mut reasons);
                }
                Seen::Nothing(_) => streams::judge_passed_by(&proof, &mut reasons),
            }
            judge_tls(proxy, &proof, &mut reasons);
            judge_demands(proxy, &proof, &mut reasons);
            judge_scripts(proxy, &proof, &mut reasons);
        }
        judge_configuration(proxy, &mut reasons);
        proofs.push(proof);
    }
    if let Some(service) = service {
        streams::judge_service(service, sent.requests, retries_before, &mut reasons);
    }
    let service = service.map(CountedService::proof);
    PathProof { proven: reasons.is_empty(), proxies: proofs, reasons, service, tracing: None }
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
            (name.clone(), after.saturating_sub(before))
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

/// `explained` requests more than were sent have a known cause.
fn judge_count(
    proxy: &CountedProxy,
    proof: &ProxyProof,
    connections: u64,
    explained: u64,
    reasons: &mut Vec<String>,
) {
    let (name, received, expected) = (proxy.called(), proof.requests_received, proof.requests_expected);
    let forgiven = forgiven(expected, connections);
    if received + forgiven < expected {
        let manner =
            if received == 0 { "traffic did not pass it" } else { "part of the traffic did not pass it" };
        reasons.push(format!("{name} saw {received} of {expected} requests: {manner}"));
    } else if received > expected + explained {
        let surplus = received - expected - explained;
        reasons.push(format!(
            "{name} saw {surplus} requests more than were sent: something else uses this path"
        ));
    }
}

/// How many of these requests may be missing at whoever took them on so many connections.
fn forgiven(expected: u64, connections: u64) -> u64 {
    connections.min(most_forgiven(expected))
}

fn most_forgiven(expected: u64) -> u64 {
    ((expected as f64 * FORGIVEN_FRACTION) as u64).max(FORGIVEN_AT_LEAST)
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
        let evidence = position.evidence(tls_expected);
        CountedProxy { name: name.to_owned(), side: None, evidence, before, after: Ok(after) }
    }

    /// Requests of 73 bytes.
    fn sent(requests: u64) -> SentLoad {
        SentLoad { requests, request_bytes: Some(73.0) }
    }

    /// A proxy that counts bytes, with these of requests, and connections.
    fn ztunnel(added_to: bool, bytes: u64, connections: u64) -> CountedProxy {
        let names = ("bytes".to_owned(), "connections".to_owned());
        let seen = Seen::RequestBytes(RequestByteCounters {
            bytes: names.0.clone(),
            connections: names.1.clone(),
            added_to,
        });
        let evidence =
            Evidence { handshakes: Some(names.1.clone()), tls_expected: true, ..Evidence::of(seen) };
        let before = [(names.0.clone(), 7), (names.1.clone(), 7)].into();
        let after = [(names.0, 7 + bytes), (names.1, 7 + connections)].into();
        CountedProxy { name: "ztunnel".to_owned(), side: Some("client"), evidence, before, after: Ok(after) }
    }

    fn client(requests: u64, handshakes: u64, retries: u64) -> CountedProxy {
        proxy(
            Position::ClientSidecar { service: SERVICE },
            true,
            &[
                ("http.outbound_0.0.0.0_8080.downstream_rq_total", requests),
                ("http.outbound_0.0.0.0_8080.downstream_cx_total", 4),
                ("cluster.outbound|8080||server.default.svc.cluster.local.ssl.handshake", handshakes),
                ("cluster.outbound|8080||server.default.svc.cluster.local.upstream_rq_retry", retries),
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
    fn bytes_show_how_many_requests_passed() {
        let exact = prove(&[ztunnel(false, 3000 * 73, 4)], &sent(3000), None);
        assert!(exact.proven, "{:?}", exact.reasons);
        assert_eq!((exact.proxies[0].requests_received, exact.proxies[0].tls_handshakes), (3000, 4));
        // A proxy before it added headers: there must be enough, and more says nothing.
        assert!(prove(&[ztunnel(true, 6000 * 73, 4)], &sent(3000), None).proven);
        // A protocol's own words at the beginning of each connection.
        assert!(prove(&[ztunnel(false, 3000 * 73 + 4 * 200, 4)], &sent(3000), None).proven);
    }

    #[test]
    fn bytes_that_went_elsewhere_are_no_proof() {
        let reasons = |proxy: CountedProxy| prove(&[proxy], &sent(3000), None).reasons.join("\n");
        insta::assert_snapshot!(reasons(ztunnel(false, 0, 0)), @r"
        ztunnel at the client saw 0 of 3000 requests: traffic did not pass it
        ztunnel at the client completed no TLS handshake with its peer, though mutual TLS is claimed
        ");
        insta::assert_snapshot!(reasons(ztunnel(true, 2000 * 73, 3)), @"ztunnel at the client saw 2000 of 3000 requests: part of the traffic did not pass it");
        insta::assert_snapshot!(reasons(ztunnel(false, 4000 * 73, 4)), @"ztunnel at the client saw 906 requests more than were sent: something else uses this path");
        let unknown = SentLoad { request_bytes: None, ..sent(3000) };
        assert!(!prove(&[ztunnel(false, 3000 * 73, 4)], &unknown, None).proven);
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
