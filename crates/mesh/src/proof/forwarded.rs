//! Whether a proxy sent on what it received, and by mutual TLS throughout: that it received every request, and completed a
//! handshake, does not say so. A proxy may answer by itself, and part of its connections may be in plain text.

use super::counters::Encrypted;
use super::delta::allowance;
use super::evidence::Seen;
use super::side::Side;

/// Checks that a proxy that reads requests sent them on, except those that it or the proxies before it gave up.
pub(super) fn check_forwarded(side: &Side<'_>, reasons: &mut Vec<String>) {
    let (Side { proxy, proof, .. }, given_up) = (side, side.with_own.given_up);
    let (Some(forwarded), Seen::Requests(counters)) = (&proxy.evidence.forwarded, &proxy.evidence.seen)
    else {
        return;
    };
    let (received, sent) = (proof.requests_received, side.counter(&forwarded.requests));
    // One on each connection may have come as the generator ended, and been given up. What is refused needs no proof: the
    // verdict counts errors.
    let allowance = allowance(received, side.counter(&counters.connections));
    let refused: u64 = forwarded.errors.iter().map(|name| side.counter(name)).sum();
    if sent + allowance + refused.max(given_up) < received {
        reasons.push(format!(
            "{} sent on {sent} of the {received} requests that it received: it answered others itself, or sent them elsewhere",
            proxy.called()
        ));
    }
}

/// Checks that each connection was by mutual TLS. `check_tls` reports if none was. A connection that was still being
/// made may have gone with a request that was given up.
pub(super) fn check_encrypted(side: &Side<'_>, reasons: &mut Vec<String>) {
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
