//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/histogram.rs"]
mod histogram;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/trials.rs"]
mod trials;

use replay::replay;

#[test]
fn corpus_of_histograms_passes() {
    replay("histogram", histogram::check);
}

#[test]
fn corpus_of_trials_passes() {
    replay("trials", trials::check);
}
