//! Invariants of any configuration dump of an Envoy or a ztunnel.
//! Included by the fuzz target and by the test that replays the corpus.

/// The first byte chooses the proxy.
pub fn check(input: &[u8]) {
    mesh::invariants::check_config_dump(input);
}
