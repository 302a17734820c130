//! Invariants of any two moments of a kubelet, and of a Linkerd proxy. Included by the fuzz target and by the test that replays
//! the corpus.

/// A summary and a page of counters for each moment, separated by zero bytes.
pub fn check(input: &[u8]) {
    cluster::check_kubelet(input);
}
