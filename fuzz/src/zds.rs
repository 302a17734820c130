//! Invariants of a hand-over of pods, whatever a ztunnel sends (ZDS). Included by the fuzz target
//! and by the test that replays the corpus.

/// Each message is behind its length in one byte.
pub fn check(input: &[u8]) {
    lab::check_zds_messages(input);
}
