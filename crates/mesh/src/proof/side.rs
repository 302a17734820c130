//! One proxy at its place on a path: what it shows, and what of that is wrong.

use super::counted::CountedProxy;
use super::counters::Encrypted;
use super::delta::{counter, delta};
use super::evidence::{Evidence, Seen};
use super::requests::Explained;
use super::{forwarded, requests, streams};
use experiment::environment::SentLoad;
use experiment::schema::{ProxyProof, ServiceProof};
use std::collections::BTreeMap;

/// End of the counters of rejected configuration of any kind.
const REJECTED_SUFFIX: &str = ".update_rejected";
const SCRIPT_ERRORS_SUFFIX: &str = ".lua.errors";

#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    pub proxy: &'a CountedProxy,
    pub proof: &'a ProxyProof,
    pub sent: &'a SentLoad,
    /// Of the proxies before it.
    pub before: Explained,
    /// Of the proxies before it and of the proxy itself.
    pub with_own: Explained,
    /// The nearest proxy before it that carries connections.
    pub nearer: Option<&'a ProxyProof>,
    /// What was to pass it, as counted behind or before it; absent if nobody counted.
    pub passing: Option<&'a ServiceProof>,
}

/// Increases of its counters; empty if they could not be read.
fn deltas(proxy: &CountedProxy) -> BTreeMap<String, u64> {
    let after = proxy.after.as_ref().ok();
    let delta = |after| move |name: &String| (name.clone(), delta(&proxy.before, after, name));
    after.into_iter().flat_map(|after| after.keys().map(delta(after))).collect()
}

/// Proof of a proxy. `passing` was to pass it, as counted behind or before it.
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

/// Handshakes in the trial; all before it if every connection is older, as those of services are that keep them.
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

/// Faults of a proxy as a whole: whatever passes it is not proven.
pub(super) fn faults(proxy: &CountedProxy) -> Vec<String> {
    let name = proxy.called();
    let after = match &proxy.after {
        Ok(after) => after,
        Err(reason) => return vec![format!("{name} could not be asked for its counters: {reason}")],
    };
    let mut faults = Vec::new();
    // If a script fails, Envoy lets the request go on as if there were none.
    let failures = after.keys().filter(|name| name.ends_with(SCRIPT_ERRORS_SUFFIX));
    let failures: u64 = failures.map(|name| delta(&proxy.before, after, name)).sum();
    if failures > 0 {
        faults.push(format!("{name} failed to run the Lua script {failures} times"));
    }
    // A proxy that rejects configuration runs with an older one: counted since its start, and none may be.
    let rejected = after.iter().filter(|(name, count)| name.ends_with(REJECTED_SUFFIX) && **count > 0);
    faults.extend(rejected.map(|(counter, rejected)| {
        format!("{name} refused {rejected} updates of its configuration ({counter})")
    }));
    faults
}

/// Whether a counter tells of the proxy as a whole, whatever its path.
pub(super) fn is_of_fault(counter: &str) -> bool {
    counter.ends_with(REJECTED_SUFFIX) || counter.ends_with(SCRIPT_ERRORS_SUFFIX)
}

impl Side<'_> {
    /// Checks what passed it.
    pub fn check_load(&self, reasons: &mut Vec<String>) {
        match &self.proxy.evidence.seen {
            Seen::Requests(counters) => requests::check_read(self, counters, reasons),
            Seen::RequestBytes(counters) => requests::check_bytes(self, counters, reasons),
            Seen::Streams(_) => streams::check_carried(self, reasons),
            Seen::Nothing(_) => streams::check_passed_by(self.proof, reasons),
        }
        forwarded::check_forwarded(self, reasons);
    }

    /// Checks counters that do not tell edges apart: any of those that pass it may have raised them.
    pub fn check_demands(&self, reasons: &mut Vec<String>) {
        for demand in &self.proxy.evidence.demands {
            if (self.counter(&demand.counter) > 0) != demand.rises {
                reasons.push(format!("{} {}", self.proxy.called(), demand.otherwise));
            }
        }
    }

    pub fn counter(&self, name: &str) -> u64 {
        counter(self.proof, name)
    }

    pub fn check_tls(&self, reasons: &mut Vec<String>) {
        let (name, handshakes) = (self.proxy.called(), self.proof.tls_handshakes);
        if self.proof.tls_expected && handshakes == 0 {
            reasons.push(format!(
                "{name} completed no TLS handshake with its peer, though mutual TLS is claimed"
            ));
        }
        if !self.proof.tls_expected && handshakes > 0 {
            reasons.push(format!(
                "{name} completed {handshakes} TLS handshakes, though mutual TLS is switched off"
            ));
        }
        let refused = self.proxy.evidence.refused.as_deref().map_or(0, |name| self.counter(name));
        if refused > 0 {
            reasons.push(format!("{name} refused {refused} connections that did not come as its mode wants them (plain text for TLS, or the reverse)"));
        }
        forwarded::check_encrypted(self, reasons);
    }
}

/// What it means that only `count` of what was expected passed a proxy.
pub(super) fn manner(count: u64) -> &'static str {
    if count == 0 { "traffic did not pass it" } else { "part of the traffic did not pass it" }
}
