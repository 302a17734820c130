//! Differences of counters, and by how much they may miss what was sent.

use experiment::schema::ProxyProof;
use std::collections::BTreeMap;

/// More than anything counts in a trial: a proxy that says more is taken for one that says this, and no sum of a few ends
/// beyond all numbers.
pub const MAX_COUNT: u64 = 1 << 48;

pub fn delta(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>, name: &str) -> u64 {
    let read = |counters: &BTreeMap<String, u64>| counters.get(name).copied().unwrap_or(0);
    read(after).saturating_sub(read(before)).min(MAX_COUNT)
}

pub fn counter(proof: &ProxyProof, name: &str) -> u64 {
    proof.counters.get(name).copied().unwrap_or(0)
}

/// Missing requests are never allowed beyond this share of all, or [`MIN_ALLOWANCE`] if that is more: one of many
/// connections that bypassed a proxy must show.
const ALLOWANCE_FRACTION: f64 = 0.01;
const MIN_ALLOWANCE: u64 = 16;

/// Number of requests that may be missing at a component that received them on `connections`.
pub fn allowance(expected: u64, connections: u64) -> u64 {
    connections.min(max_allowance(expected))
}

/// The same for any number of connections.
pub fn max_allowance(expected: u64) -> u64 {
    ((expected as f64 * ALLOWANCE_FRACTION) as u64).max(MIN_ALLOWANCE)
}
