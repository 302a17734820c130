//! Increases of counters, and how many of the requests sent may be missing from them.

use experiment::schema::ProxyProof;
use std::collections::BTreeMap;

/// Upper limit of an increase, above any real count in a trial. Higher values are clamped to it, so that sums
/// of a few cannot overflow.
pub const MAX_COUNT: u64 = 1 << 48;

pub fn delta(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>, name: &str) -> u64 {
    let read = |counters: &BTreeMap<String, u64>| counters.get(name).copied().unwrap_or(0);
    read(after).saturating_sub(read(before)).min(MAX_COUNT)
}

pub fn counter(proof: &ProxyProof, name: &str) -> u64 {
    proof.counters.get(name).copied().unwrap_or(0)
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
