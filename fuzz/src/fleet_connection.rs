//! Invariants of a fleet's connection, whatever a control plane sends: HTTP/2 frames and gRPC messages in them. Included by
//! the fuzz target and by the test that replays the corpus.

/// The first byte says how the rest is cut into pieces.
pub fn check(input: &[u8]) {
    fleet::check_connection(input);
}
