//! One proxy at its place on a path: what it shows, and what of that is wrong.

use super::counted::CountedProxy;
use super::delta::{counter, delta};
use super::evidence::Seen;
use super::requests::Explained;
use super::service::CountedService;
use super::{forwarded, requests, streams};
use experiment::environment::SentLoad;
use experiment::schema::ProxyProof;
use std::collections::BTreeMap;

/// End of the counters of rejected configuration of any kind.
const REJECTED_SUFFIX: &str = ".update_rejected";

const SCRIPT_ERRORS_SUFFIX: &str = ".lua.errors";

#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    /// Requests that should pass the proxy.
    pub sent: &'a SentLoad,
    /// Of the proxies before it.
    pub before: Explained,
    /// Of the proxies before it and of the proxy itself.
    pub with_own: Explained,
    /// The nearest proxy before it that carries connections.
    pub nearer: Option<&'a ProxyProof>,
    /// Counters of the service for the connections that pass the proxy.
    pub service: Option<&'a CountedService>,
}

/// Increases of its counters; empty if they could not be read.
fn deltas(proxy: &CountedProxy) -> BTreeMap<String, u64> {
    let after = proxy.after.as_ref().ok();
    let delta = |after| move |name: &String| (name.clone(), delta(&proxy.before, after, name));
    after.into_iter().flat_map(|after| after.keys().map(delta(after))).collect()
}

/// Proof of a proxy. `service` has counted the connections that pass it.
pub(super) fn read(proxy: &CountedProxy, sent: &SentLoad, service: Option<&CountedService>) -> ProxyProof {
    let counters = deltas(proxy);
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

pub(super) fn carries(proof: &ProxyProof) -> bool {
    proof.streams.is_some_and(|streams| streams.connections_expected > 0)
}

pub(super) fn check(
    proxy: &CountedProxy,
    proof: &ProxyProof,
    context: Context<'_>,
    reasons: &mut Vec<String>,
) {
    check_read(proxy, reasons);
    if proxy.after.is_ok() {
        check_load(proxy, proof, context, reasons);
    }
    check_beside_load(proxy, proof, context, reasons);
}

/// Checks that the whole load passed the proxy.
fn check_load(proxy: &CountedProxy, proof: &ProxyProof, context: Context<'_>, reasons: &mut Vec<String>) {
    match &proxy.evidence.seen {
        Seen::Requests(counters) => requests::check_read(proxy, proof, counters, context.before, reasons),
        Seen::RequestBytes(counters) => {
            requests::check_bytes(proxy, proof, counters, context.before, context.sent, reasons);
        }
        Seen::Streams(_) => streams::check_carried(proof, context.nearer, context.service, reasons),
        Seen::Nothing(_) => streams::check_passed_by(proof, reasons),
    }
}

/// Checks that part of the load passed a proxy whose expected connections are known only together with others'.
pub(super) fn check_part(
    proxy: &CountedProxy,
    proof: &ProxyProof,
    context: Context<'_>,
    reasons: &mut Vec<String>,
) {
    check_read(proxy, reasons);
    if proxy.after.is_ok() && proof.streams.is_some_and(|streams| streams.connections == 0) {
        reasons.push(format!("{} carried no connection: traffic did not pass it", proof.name));
    }
    check_beside_load(proxy, proof, context, reasons);
}

fn check_beside_load(
    proxy: &CountedProxy,
    proof: &ProxyProof,
    context: Context<'_>,
    reasons: &mut Vec<String>,
) {
    if proxy.after.is_ok() {
        forwarded::check_forwarded(proxy, proof, context.with_own.given_up, reasons);
        check_tls(proxy, proof, reasons);
        forwarded::check_encrypted(proxy, proof, context.with_own.given_up, reasons);
        check_demands(proxy, proof, reasons);
        check_scripts(proxy, proof, reasons);
    }
    check_configuration(proxy, reasons);
}

/// A proxy whose counters fell has restarted: it is not the one that was asked before.
fn check_read(proxy: &CountedProxy, reasons: &mut Vec<String>) {
    match &proxy.after {
        Err(reason) => {
            reasons.push(format!("{} could not be asked for its counters: {reason}", proxy.called()));
        }
        Ok(after)
            if after
                .iter()
                .any(|(name, after)| proxy.before.get(name).is_some_and(|before| after < before)) =>
        {
            reasons.push(format!("{} started anew during the trial: its counters fell", proxy.called()));
        }
        Ok(_) => {}
    }
}

fn check_tls(proxy: &CountedProxy, proof: &ProxyProof, reasons: &mut Vec<String>) {
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

fn check_demands(proxy: &CountedProxy, proof: &ProxyProof, reasons: &mut Vec<String>) {
    for demand in &proxy.evidence.demands {
        if (counter(proof, &demand.counter) > 0) != demand.rises {
            reasons.push(format!("{} {}", proxy.called(), demand.otherwise));
        }
    }
}

/// Where a script fails, Envoy lets the request go on as if there were none.
fn check_scripts(proxy: &CountedProxy, proof: &ProxyProof, reasons: &mut Vec<String>) {
    let failures = proof.counters.iter().filter(|(name, _)| name.ends_with(SCRIPT_ERRORS_SUFFIX));
    let failures: u64 = failures.map(|(_, count)| count).sum();
    if failures > 0 {
        reasons.push(format!("{} failed to run the Lua script {failures} times", proxy.called()));
    }
}

/// A proxy that refuses configuration runs with an older one: counted since its start, and none may be.
fn check_configuration(proxy: &CountedProxy, reasons: &mut Vec<String>) {
    let Ok(after) = &proxy.after else { return };
    for (counter, rejected) in
        after.iter().filter(|(name, count)| name.ends_with(REJECTED_SUFFIX) && **count > 0)
    {
        let name = proxy.called();
        reasons.push(format!("{name} refused {rejected} updates of its configuration ({counter})"));
    }
}
