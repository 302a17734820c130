//! Invariants of any page of an admin interface: statistics, clusters, metrics, logs, what istiod sent and processed.
//! Included by the fuzz target and by the test that replays the corpus.

/// The first byte chooses the page.
pub fn check(input: &[u8]) {
    mesh::invariants::check_admin_page(input);
}
