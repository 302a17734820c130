//! Invariants of whatever a client sends to the synthetic service over HTTP/1.1. Included by the fuzz target
//! and by the test that replays the corpus.

/// The first byte says how the rest is cut into pieces.
pub fn check(input: &[u8]) {
    service::check_requests(input);
}
