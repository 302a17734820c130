//! Invariants of any challenge of a registry (`WWW-Authenticate`). Included by the fuzz target
//! and by the test that replays the corpus.

pub fn check(input: &[u8]) {
    images::check_challenge(input);
}
