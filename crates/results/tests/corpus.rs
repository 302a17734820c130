//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/exposition.rs"]
mod exposition;
#[path = "../../../fuzz/src/histogram.rs"]
mod histogram;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn corpus_of_exposition_pages_passes() {
    replay("exposition", exposition::check);
}

#[test]
fn corpus_of_histograms_passes() {
    replay("histogram", histogram::check);
}
