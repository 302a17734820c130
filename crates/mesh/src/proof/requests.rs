//! Proof of a path by requests: counted by a proxy that reads them, or computed from their bytes if a proxy
//! forwards these unchanged (ztunnel).
//!
//! Each proxy must have seen every request that the generator sent, with exceptions. A generator that is
//! stopped leaves at most one unread request per connection. A proxy may retry or give up, so the next one
//! sees more or fewer requests; both are counted. Bytes include a protocol's overhead per connection. Behind
//! a proxy that changes requests, as a waypoint does, only too few bytes are an error.

use super::counters::{RequestByteCounters, RequestCounters};
use super::delta::{allowance, max_allowance};
use super::side::{Allowances, Side, manner};

pub(super) fn check_read(side: &Side<'_>, counters: &RequestCounters, reasons: &mut Vec<String>) {
    check_count(side, side.counter(&counters.connections), side.before, reasons);
}

pub(super) fn check_bytes(side: &Side<'_>, counters: &RequestByteCounters, reasons: &mut Vec<String>) {
    let beside = counters.beside_requests(side.proof, side.sent);
    let none_of_them = beside.saturating_add(max_allowance(side.proof.requests_expected));
    let allowances = Allowances { retries: side.before.retries.saturating_add(none_of_them), ..side.before };
    check_count(side, side.counter(&counters.connections), allowances, reasons);
}

fn check_count(side: &Side<'_>, connections: u64, allowances: Allowances, reasons: &mut Vec<String>) {
    let (name, received, expected) =
        (side.proxy.called(), side.proof.requests_received, side.proof.requests_expected);
    let allowance = allowance(expected, connections);
    // Applies even if the missing requests are explained: a proxy that saw nothing proves nothing.
    if (received == 0 && expected > 0) || received + allowance + allowances.given_up < expected {
        reasons.push(format!("{name} saw {received} of {expected} requests: {}", manner(received)));
    } else if let surplus @ 1.. = received.saturating_sub(expected + allowances.retries) {
        reasons.push(format!(
            "{name} saw {surplus} requests more than were sent: something else uses this path"
        ));
    }
}
