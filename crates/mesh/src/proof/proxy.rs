//! Checks of one proxy on a path.
//! A proxy that received every request and completed a handshake may still respond by itself instead of
//! forwarding the requests. Some of its connections may also be in plaintext. Both are checked separately.
//!
//! Requests are counted by a proxy that reads them, or computed from their bytes if a proxy forwards these
//! unchanged (ztunnel). Each proxy must have seen every request that the generator sent, with exceptions. A
//! generator that is stopped leaves at most one unread request per connection. A proxy may retry or give up,
//! so the next one sees more or fewer requests; both are counted. Bytes include a protocol's overhead per
//! connection. Behind a proxy that changes requests, as a waypoint does, only too few bytes are an error.

use super::counted::CountedProxy;
use super::counters::{Encrypted, RequestByteCounters};
use super::delta::{allowance, max_allowance};
use super::evidence::{Evidence, Seen};
use super::streams;
use experiment::environment::SentLoad;
use results::{ProxyProof, ServiceProof, StreamProof};
use std::collections::BTreeMap;

/// Suffix of counters of rejected configuration, for any type.
const REJECTED_SUFFIX: &str = ".update_rejected";
const SCRIPT_ERRORS_SUFFIX: &str = ".lua.errors";

/// Reasons why a proxy may count more or fewer requests than were sent: actions of the proxies before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowances {
    pub retries: u64,
    /// Requests that may not have reached the next proxy.
    pub given_up: u64,
}

/// A proxy on a path, together with the figures that it is checked against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    pub proxy: &'a CountedProxy,
    pub proof: &'a ProxyProof,
    pub sent: &'a SentLoad,
    /// Totals of the proxies before it.
    pub before: Allowances,
    /// Totals of the proxies before it and of the proxy itself.
    pub with_own: Allowances,
    /// The nearest proxy before it that carries connections, with what it carried.
    pub nearer: Option<(&'a str, StreamProof)>,
    /// Traffic that should have passed it, as counted behind or before it; absent if nobody counted it.
    pub passing: Option<&'a ServiceProof>,
}

/// Text for a proxy that only `count` of the expected requests or connections passed.
pub(super) fn manner(count: u64) -> &'static str {
    if count == 0 { "traffic did not pass it" } else { "part of the traffic did not pass it" }
}

/// Proof of a proxy. `passing`: traffic that should have passed it, as counted behind or before it.
pub(super) fn read(proxy: &CountedProxy, sent: &SentLoad, passing: Option<&ServiceProof>) -> ProxyProof {
    let rise = |name: &str| proxy.rise(name);
    let counters = proxy.after.iter().flat_map(BTreeMap::keys);
    let counters = counters.map(|name| (name.clone(), rise(name))).collect();
    let (requests_received, requests_expected, streams) = match &proxy.evidence.seen {
        Seen::Requests(counters) => (rise(&counters.requests), sent.requests, None),
        Seen::RequestBytes(counters) => (counters.requests(rise, sent), sent.requests, None),
        Seen::Streams(counters) => (0, 0, Some(counters.read(passing, rise))),
        Seen::Nothing(counters) => (0, 0, Some(streams::passed_by(counters, rise))),
    };
    ProxyProof {
        name: proxy.name.clone(),
        requests_received,
        requests_expected,
        streams,
        tls_handshakes: handshakes(proxy),
        tls_expected: proxy.evidence.tls_expected,
        takes_plain_text: None,
        counters,
    }
}

/// Handshakes in the trial. If all connections predate the trial, as with services that keep them open, the
/// handshakes before it.
fn handshakes(proxy: &CountedProxy) -> u64 {
    let rise = |name: &str| proxy.rise(name);
    let Evidence { handshakes: Some(name), tls_expected, forwarded, encrypted, seen, .. } = &proxy.evidence
    else {
        return 0;
    };
    let Some((load, connections)) = seen.load() else { return rise(name) };
    let connections = match (encrypted, forwarded) {
        (Some(Encrypted::Forwarded), Some(forwarded)) => &forwarded.connections,
        _ => connections,
    };
    match rise(name) {
        0 if *tls_expected && rise(connections) == 0 && rise(load) > 0 => {
            proxy.before.get(name).copied().unwrap_or(0)
        }
        rise => rise,
    }
}

/// Faults of a proxy as a whole, which leave everything that passes it unproven.
pub(super) fn faults(proxy: &CountedProxy) -> Vec<String> {
    let name = proxy.called();
    let after = match &proxy.after {
        Ok(after) => after,
        Err(reason) => return vec![format!("{name} did not report its counters: {reason}")],
    };
    let mut faults = Vec::new();
    // If a script fails, Envoy continues the request as if there were no script.
    let failures = after.keys().filter(|name| name.ends_with(SCRIPT_ERRORS_SUFFIX));
    let failures: u64 = failures.map(|name| proxy.rise(name)).sum();
    if failures > 0 {
        faults.push(format!("{name} failed to run the Lua script {failures} times"));
    }
    // A proxy that rejects an update keeps an older configuration: none may be rejected since its start.
    let rejected = after.iter().filter(|(name, count)| name.ends_with(REJECTED_SUFFIX) && **count > 0);
    faults.extend(rejected.map(|(counter, rejected)| {
        format!("{name} refused {rejected} updates of its configuration ({counter})")
    }));
    faults
}

/// True if a counter is about the proxy as a whole, whatever its path.
pub(super) fn is_of_fault(counter: &str) -> bool {
    counter.ends_with(REJECTED_SUFFIX) || counter.ends_with(SCRIPT_ERRORS_SUFFIX)
}

/// Checks the traffic that passed the proxy.
pub(super) fn check_load(side: &Side<'_>, reasons: &mut Vec<String>) {
    match &side.proxy.evidence.seen {
        Seen::Requests(counters) => check_count(side, &counters.connections, side.before, reasons),
        Seen::RequestBytes(counters) => check_bytes(side, counters, reasons),
        Seen::Streams(_) => streams::check_carried(side, reasons),
        Seen::Nothing(_) => streams::check_passed_by(side.proof, reasons),
    }
    check_forwarded(side, reasons);
}

fn check_bytes(side: &Side<'_>, counters: &RequestByteCounters, reasons: &mut Vec<String>) {
    let beside = counters.beside_requests(|name| side.proxy.rise(name), side.sent);
    let none_of_them = beside + max_allowance(side.proof.requests_expected);
    let allowances = Allowances { retries: side.before.retries + none_of_them, ..side.before };
    check_count(side, &counters.connections, allowances, reasons);
}

fn check_count(side: &Side<'_>, connections: &str, allowances: Allowances, reasons: &mut Vec<String>) {
    let (name, received, expected) =
        (side.proxy.called(), side.proof.requests_received, side.proof.requests_expected);
    let allowance = allowance(expected, side.proxy.rise(connections));
    // Applies even if the missing requests are explained: a proxy that saw nothing proves nothing.
    if (received == 0 && expected > 0) || received + allowance + allowances.given_up < expected {
        reasons.push(format!("{name} saw {received} of {expected} requests: {}", manner(received)));
    } else if let surplus @ 1.. = received.saturating_sub(expected + allowances.retries) {
        reasons.push(format!(
            "{name} saw {surplus} requests more than were sent: something else uses this path"
        ));
    }
}

/// Checks counters shared by edges: any edge that passes the proxy may have increased them.
pub(super) fn check_demands(side: &Side<'_>, reasons: &mut Vec<String>) {
    for demand in &side.proxy.evidence.demands {
        if (side.proxy.rise(&demand.counter) > 0) != demand.rises {
            reasons.push(format!("{} {}", side.proxy.called(), demand.otherwise));
        }
    }
}

pub(super) fn check_tls(side: &Side<'_>, reasons: &mut Vec<String>) {
    let (name, handshakes) = (side.proxy.called(), side.proof.tls_handshakes);
    if side.proof.tls_expected && handshakes == 0 {
        reasons
            .push(format!("{name} completed no TLS handshake with its peer, though mutual TLS is claimed"));
    }
    if !side.proof.tls_expected && handshakes > 0 {
        reasons
            .push(format!("{name} completed {handshakes} TLS handshakes, though mutual TLS is switched off"));
    }
    let refused = side.proxy.evidence.refused.as_deref().map_or(0, |name| side.proxy.rise(name));
    if refused > 0 {
        reasons.push(format!("{name} refused {refused} connections that were plaintext where its mode requires TLS, or the reverse"));
    }
    check_encrypted(side, reasons);
}

/// Checks that a proxy that reads requests forwarded them, except for those that it or earlier proxies gave up.
fn check_forwarded(side: &Side<'_>, reasons: &mut Vec<String>) {
    let (Side { proxy, proof, .. }, given_up) = (side, side.with_own.given_up);
    let (Some(forwarded), Seen::Requests(counters)) = (&proxy.evidence.forwarded, &proxy.evidence.seen)
    else {
        return;
    };
    let (received, sent) = (proof.requests_received, proxy.rise(&forwarded.requests));
    // One request per connection may have arrived as the generator ended, and been given up. Error responses
    // need no proof: the verdict counts errors.
    let allowance = allowance(received, proxy.rise(&counters.connections));
    if sent + allowance + proxy.refused().max(given_up) < received {
        reasons.push(format!(
            "{} sent on {sent} of the {received} requests that it received: it answered others itself, or sent them elsewhere",
            proxy.called()
        ));
    }
}

/// Checks that every connection used mutual TLS; `check_tls` reports if none did. A connection that was still
/// being established may have ended with a request that was given up.
fn check_encrypted(side: &Side<'_>, reasons: &mut Vec<String>) {
    let (Side { proxy, proof, .. }, given_up) = (side, side.with_own.given_up);
    let Some(encrypted) = proxy.evidence.encrypted.filter(|_| proof.tls_expected) else { return };
    let (connections, whose) = match encrypted {
        Encrypted::Received => {
            let Some((_, came_on)) = proxy.evidence.seen.load() else { return };
            (proxy.rise(came_on), "took")
        }
        Encrypted::Forwarded => {
            let Some(forwarded) = &proxy.evidence.forwarded else { return };
            let failed = proxy.rise(&forwarded.failed_connections);
            (proxy.rise(&forwarded.connections).saturating_sub(failed), "opened")
        }
    };
    let handshakes = proof.tls_handshakes;
    if handshakes > 0 && handshakes + given_up < connections {
        reasons.push(format!(
            "{} {whose} {connections} connections and completed {handshakes} TLS handshakes with its peer: others were in \
             plaintext, though mutual TLS is claimed",
            proxy.called()
        ));
    }
}
