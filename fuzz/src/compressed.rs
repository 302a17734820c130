//! Invariants of any bytes of a layer: gzip, Zstandard or plain. Included by the fuzz target
//! and by the test that replays the corpus.

pub fn check(input: &[u8]) {
    images::check_compressed(input);
}
