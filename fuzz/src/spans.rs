//! Invariants of any export of spans (OTLP). Included by the fuzz target and by the tests of the collector, each beside the reader.

use super::spans_by_service;

pub fn check(input: &[u8]) {
    let Some(counted) = spans_by_service(input) else { return };
    // A span takes two bytes at least, and so does the resource that names its sender.
    let spans: u64 = counted.values().sum();
    assert!(2 * (spans as usize).max(counted.len()) <= input.len(), "{counted:?}");
    assert!(counted.keys().map(String::len).sum::<usize>() <= input.len());
    let twice = spans_by_service(&input.repeat(2)).expect("exports can be joined");
    assert!(counted.iter().all(|(name, spans)| twice[name] == 2 * spans));
}
