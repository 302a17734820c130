//! Whether a proxy sent on what it received, and by mutual TLS throughout: that it received every request, and completed a
//! handshake, does not say so. A proxy may answer by itself, and part of its connections may be in plain text.

use super::{CountedProxy, Seen, counter, requests};
use experiment::schema::ProxyProof;

/// Counters of what an Envoy sends on through the cluster of the path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SentOn {
    /// Requests, those that were sent again among them.
    pub requests: String,
    /// Connections that it opened.
    pub connections: String,
    /// Those of them that never came about.
    pub failed_connections: String,
    /// Requests that were answered with an error, by the proxy itself or by those behind it.
    pub errors: [String; 2],
}

impl SentOn {
    /// What the connection manager with this prefix sends on through this cluster.
    #[must_use]
    pub fn through(connection_manager: &str, cluster: &str) -> Self {
        Self {
            errors: ["4xx", "5xx"].map(|kind| format!("http.{connection_manager}.downstream_rq_{kind}")),
            requests: format!("cluster.{cluster}.upstream_rq_total"),
            connections: format!("cluster.{cluster}.upstream_cx_total"),
            failed_connections: format!("cluster.{cluster}.upstream_cx_connect_fail"),
        }
    }
}

/// The connections each of which must have completed a handshake, where mutual TLS is claimed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Encrypted {
    /// Those that the load came on.
    Received,
    /// Those that it was sent on by.
    SentOn,
}

/// Judges whether a proxy that reads requests sent them on, but for those that it or the proxies before it gave up.
pub(super) fn judge_sent_on(
    proxy: &CountedProxy,
    proof: &ProxyProof,
    given_up: u64,
    reasons: &mut Vec<String>,
) {
    let (Some(sent_on), Seen::Requests(counters)) = (&proxy.evidence.sent_on, &proxy.evidence.seen) else {
        return;
    };
    let (received, sent) = (proof.requests_received, counter(proof, &sent_on.requests));
    // One on each connection may have come as the generator ended, and been given up. What is refused needs no proof: the
    // verdict counts errors.
    let forgiven = requests::forgiven(received, counter(proof, &counters.connections));
    let refused: u64 = sent_on.errors.iter().map(|name| counter(proof, name)).sum();
    if sent + forgiven + refused.max(given_up) < received {
        reasons.push(format!(
            "{} sent on {sent} of the {received} requests that it received: it answered others itself, or sent them elsewhere",
            proxy.called()
        ));
    }
}

/// Judges whether each connection was by mutual TLS. That none was is said elsewhere. A connection that was still being made
/// may have gone with a request that was given up.
pub(super) fn judge_encrypted(
    proxy: &CountedProxy,
    proof: &ProxyProof,
    given_up: u64,
    reasons: &mut Vec<String>,
) {
    let Some(encrypted) = proxy.evidence.encrypted.filter(|_| proof.tls_expected) else { return };
    let (connections, whose) = match encrypted {
        Encrypted::Received => {
            let came_on = match &proxy.evidence.seen {
                Seen::Requests(counters) => &counters.connections,
                Seen::Streams(counters) => &counters.connections,
                Seen::RequestBytes(_) | Seen::Nothing(_) => return,
            };
            (counter(proof, came_on), "took")
        }
        Encrypted::SentOn => {
            let Some(sent_on) = &proxy.evidence.sent_on else { return };
            let failed = counter(proof, &sent_on.failed_connections);
            (counter(proof, &sent_on.connections).saturating_sub(failed), "opened")
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
