//! Invariants of whatever a service answers to a node over HTTP/1.1. Included by the fuzz target
//! and by the test that replays the corpus.

/// The first byte says how the rest is cut into pieces.
pub fn check(input: &[u8]) {
    service::node::check_response(input);
}
