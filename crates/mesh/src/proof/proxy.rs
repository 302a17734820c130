//! Checks of one proxy on a path.
//! A proxy that received every request and completed a handshake may still respond by itself instead of
//! forwarding the requests. Some of its connections may also be in plaintext. Both are checked separately.

use super::counted::CountedProxy;
use super::counters::Encrypted;
use super::delta::{allowance, delta};
use super::evidence::{Evidence, Seen};
use super::side::Side;
use super::{requests, streams};
use experiment::environment::SentLoad;
use experiment::schema::{ProxyProof, ServiceProof};
use std::collections::BTreeMap;

/// Suffix of counters of rejected configuration, for any type.
const REJECTED_SUFFIX: &str = ".update_rejected";
const SCRIPT_ERRORS_SUFFIX: &str = ".lua.errors";

/// Increases of its counters; empty if they could not be read.
fn deltas(proxy: &CountedProxy) -> BTreeMap<String, u64> {
    let after = proxy.after.as_ref().ok();
    let delta = |after| move |name: &String| (name.clone(), delta(&proxy.before, after, name));
    after.into_iter().flat_map(|after| after.keys().map(delta(after))).collect()
}

/// Proof of a proxy. `passing`: traffic that should have passed it, as counted behind or before it.
pub(super) fn read(proxy: &CountedProxy, sent: &SentLoad, passing: Option<&ServiceProof>) -> ProxyProof {
    let counters = deltas(proxy);
    let rise = |name: &str| counters.get(name).copied().unwrap_or(0);
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
        tls_handshakes: handshakes(proxy, rise),
        tls_expected: proxy.evidence.tls_expected,
        takes_plain_text: None,
        counters,
    }
}

/// Handshakes in the trial. If all connections predate the trial, as with services that keep them open, the
/// handshakes before it.
fn handshakes(proxy: &CountedProxy, rise: impl Fn(&str) -> u64) -> u64 {
    let Evidence { handshakes: Some(name), tls_expected, forwarded, encrypted, seen, .. } = &proxy.evidence
    else {
        return 0;
    };
    let (load, connections) = match seen {
        Seen::Requests(counters) => (&counters.requests, &counters.connections),
        Seen::RequestBytes(counters) => (&counters.bytes, &counters.connections),
        Seen::Streams(counters) => (&counters.received_bytes, &counters.connections),
        Seen::Nothing(_) => return rise(name),
    };
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
        Err(reason) => return vec![format!("{name} could not be asked for its counters: {reason}")],
    };
    let mut faults = Vec::new();
    // If a script fails, Envoy continues the request as if there were no script.
    let failures = after.keys().filter(|name| name.ends_with(SCRIPT_ERRORS_SUFFIX));
    let failures: u64 = failures.map(|name| delta(&proxy.before, after, name)).sum();
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
        Seen::Requests(counters) => requests::check_read(side, counters, reasons),
        Seen::RequestBytes(counters) => requests::check_bytes(side, counters, reasons),
        Seen::Streams(_) => streams::check_carried(side, reasons),
        Seen::Nothing(_) => streams::check_passed_by(side.proof, reasons),
    }
    check_forwarded(side, reasons);
}

/// Checks counters shared by edges: any edge that passes the proxy may have increased them.
pub(super) fn check_demands(side: &Side<'_>, reasons: &mut Vec<String>) {
    for demand in &side.proxy.evidence.demands {
        if (side.counter(&demand.counter) > 0) != demand.rises {
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
    let refused = side.proxy.evidence.refused.as_deref().map_or(0, |name| side.counter(name));
    if refused > 0 {
        reasons.push(format!("{name} refused {refused} connections that did not come as its mode wants them (plain text for TLS, or the reverse)"));
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
    let (received, sent) = (proof.requests_received, side.counter(&forwarded.requests));
    // One request per connection may have arrived as the generator ended, and been given up. Error responses
    // need no proof: the verdict counts errors.
    let allowance = allowance(received, side.counter(&counters.connections));
    let refused: u64 = forwarded.errors.iter().map(|name| side.counter(name)).sum();
    if sent + allowance + refused.max(given_up) < received {
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
            let came_on = match &proxy.evidence.seen {
                Seen::Requests(counters) => &counters.connections,
                Seen::Streams(counters) => &counters.connections,
                Seen::RequestBytes(_) | Seen::Nothing(_) => return,
            };
            (side.counter(came_on), "took")
        }
        Encrypted::Forwarded => {
            let Some(forwarded) = &proxy.evidence.forwarded else { return };
            let failed = side.counter(&forwarded.failed_connections);
            (side.counter(&forwarded.connections).saturating_sub(failed), "opened")
        }
    };
    let handshakes = proof.tls_handshakes;
    if handshakes > 0 && handshakes + given_up < connections {
        reasons.push(format!(
            "{} {whose} {connections} connections and completed {handshakes} TLS handshakes with its peer: others were in plain \
             text, though mutual TLS is claimed",
            proxy.called()
        ));
    }
}
