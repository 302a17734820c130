//! Proof of a path by connections and bytes, for proxies that carry opaque TCP: a client's own TLS, raw TCP, ztunnel.
//! The requests went through all proxies if the service received every request, and if each proxy carried as
//! many connections as the service accepted. Each proxy must also have carried at least the bytes that the
//! service moved, and as many bytes as the proxy before it.

use super::counters::COUNTERS_REQUEST_BYTES;
use super::proxy::{Side, manner};
use results::{ProxyProof, StreamProof};

/// Maximum difference in bytes between adjacent proxies, as a fraction of all: data in sockets when the
/// generator ended.
const BYTES_APART_FRACTION: f64 = 0.01;
/// Maximum difference at low traffic: a proxy that reads SNI may or may not count a connection's first TLS message.
const BYTES_APART_PER_CONNECTION: u64 = 4096;

/// Connections that a proxy carried although the path bypasses it.
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
    let Side { proof, nearer, passing, .. } = *side;
    let (name, Some(streams)) = (&proof.name, proof.streams) else { return };
    let Some(served) = passing else {
        reasons.push(format!("{name} does not read requests, and the service did not report its own count"));
        return;
    };
    let (connections, expected) = (streams.connections, streams.connections_expected);
    // Services keep connections open between trials.
    if connections == 0 && expected == 0 && streams.received_bytes.min(streams.sent_bytes) == 0 {
        reasons.push(format!("{name} carried no connection: traffic did not pass it"));
        return;
    }
    if connections < expected {
        reasons
            .push(format!("{name} carried {connections} of {expected} connections: {}", manner(connections)));
        return;
    }
    // When the generator ends, each connection may have a response in flight.
    let each = served.sent_bytes.checked_div(served.requests_received).unwrap_or(0);
    let under_way = each * expected;
    let missing = under_way + COUNTERS_REQUEST_BYTES;
    if streams.received_bytes + missing < served.received_bytes
        || streams.sent_bytes + missing < served.sent_bytes
    {
        reasons.push(format!(
            "{name} carried {} bytes to the service and {} back, which moved {} and {} itself: part of the traffic did not pass it",
            streams.received_bytes, streams.sent_bytes, served.received_bytes, served.sent_bytes
        ));
    }
    let Some((nearer, before)) = nearer else { return };
    for (direction, bytes, bytes_before) in [
        ("to the service", streams.received_bytes, before.received_bytes),
        ("to the client", streams.sent_bytes, before.sent_bytes),
    ] {
        let share = (bytes.max(bytes_before) as f64 * BYTES_APART_FRACTION) as u64;
        let framing = BYTES_APART_PER_CONNECTION * expected;
        if bytes.abs_diff(bytes_before) > share + under_way + framing {
            reasons.push(format!(
                "{name} carried {bytes} bytes {direction} and {nearer} {bytes_before}: something else uses this path"
            ));
        }
    }
}
