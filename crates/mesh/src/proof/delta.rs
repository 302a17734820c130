//! Increases of counters, and how many of the requests sent may be missing from them.

use std::collections::BTreeMap;

pub type Counters = BTreeMap<String, u64>;

/// Increase of a counter; zero if the counters after a trial could not be read, or lack it.
pub fn delta(before: &Counters, after: &Result<Counters, String>, name: &str) -> u64 {
    let read = |counters: &Counters| counters.get(name).copied().unwrap_or(0);
    after.as_ref().map_or(0, |after| read(after).saturating_sub(read(before)))
}

/// Maximum fraction of requests that may be missing, unless [`MIN_ALLOWANCE`] is more: even one of many
/// connections that bypasses a proxy must be detected.
const ALLOWANCE_FRACTION: f64 = 0.01;
const MIN_ALLOWANCE: u64 = 16;

/// Number of requests that may be missing at a component that received them on `connections`.
pub fn allowance(expected: u64, connections: u64) -> u64 {
    connections.min(max_allowance(expected))
}

/// Maximum of [`allowance`] for any number of connections.
pub fn max_allowance(expected: u64) -> u64 {
    ((expected as f64 * ALLOWANCE_FRACTION) as u64).max(MIN_ALLOWANCE)
}
