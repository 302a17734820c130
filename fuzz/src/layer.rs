//! Invariants of any archive that a registry sends as a layer. Included by the fuzz target and by the test that replays
//! the corpus.

pub fn check(input: &[u8]) {
    images::check_archive(input);
}
