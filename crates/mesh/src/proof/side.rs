//! One proxy at its place on a path: what it shows, and what of that is wrong.

use super::counted::{CountedProxy, CountedService};
use super::delta::{counter, delta};
use super::evidence::Seen;
use super::requests::Explained;
use super::{forwarded, requests, streams};
use experiment::environment::SentLoad;
use experiment::schema::ProxyProof;
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

impl Side<'_> {
    pub fn check(&self, reasons: &mut Vec<String>) {
        self.check_read(reasons);
        if self.proxy.after.is_ok() {
            match &self.proxy.evidence.seen {
                Seen::Requests(counters) => requests::check_read(self, counters, reasons),
                Seen::RequestBytes(counters) => requests::check_bytes(self, counters, reasons),
                Seen::Streams(_) => streams::check_carried(self, reasons),
                Seen::Nothing(_) => streams::check_passed_by(self.proof, reasons),
            }
        }
        self.check_beside_load(reasons);
    }

    /// Checks that part of the load passed a proxy whose expected connections are known only together with others'.
    pub fn check_part(&self, reasons: &mut Vec<String>) {
        self.check_read(reasons);
        if self.proxy.after.is_ok() && self.proof.streams.is_some_and(|streams| streams.connections == 0) {
            reasons.push(format!("{} carried no connection: traffic did not pass it", self.proof.name));
        }
        self.check_beside_load(reasons);
    }

    pub fn counter(&self, name: &str) -> u64 {
        counter(self.proof, name)
    }

    fn check_beside_load(&self, reasons: &mut Vec<String>) {
        let Ok(after) = &self.proxy.after else { return };
        forwarded::check_forwarded(self, reasons);
        self.check_tls(reasons);
        forwarded::check_encrypted(self, reasons);
        let name = self.proxy.called();
        for demand in &self.proxy.evidence.demands {
            if (self.counter(&demand.counter) > 0) != demand.rises {
                reasons.push(format!("{name} {}", demand.otherwise));
            }
        }
        // If a script fails, Envoy lets the request go on as if there were none.
        let failures = self.proof.counters.iter().filter(|(name, _)| name.ends_with(SCRIPT_ERRORS_SUFFIX));
        let failures: u64 = failures.map(|(_, count)| count).sum();
        if failures > 0 {
            reasons.push(format!("{name} failed to run the Lua script {failures} times"));
        }
        // A proxy that rejects configuration runs with an older one: counted since its start, and none may be.
        let rejected = after.iter().filter(|(name, count)| name.ends_with(REJECTED_SUFFIX) && **count > 0);
        for (counter, rejected) in rejected {
            reasons.push(format!("{name} refused {rejected} updates of its configuration ({counter})"));
        }
    }

    /// A proxy whose counters fell has restarted: it is not the one that was asked before.
    fn check_read(&self, reasons: &mut Vec<String>) {
        let (proxy, name) = (self.proxy, self.proxy.called());
        match &proxy.after {
            Err(reason) => reasons.push(format!("{name} could not be asked for its counters: {reason}")),
            Ok(after) if has_restarted(&proxy.before, after) => {
                reasons.push(format!("{name} started anew during the trial: its counters fell"));
            }
            Ok(_) => {}
        }
    }

    fn check_tls(&self, reasons: &mut Vec<String>) {
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
    }
}

pub(super) fn has_restarted(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> bool {
    before.iter().any(|(name, before)| after.get(name).is_some_and(|after| after < before))
}

/// What it means that only `count` of what was expected passed a proxy.
pub(super) fn manner(count: u64) -> &'static str {
    if count == 0 { "traffic did not pass it" } else { "part of the traffic did not pass it" }
}
