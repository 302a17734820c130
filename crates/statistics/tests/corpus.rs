//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/histogram.rs"]
mod histogram;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/trials.rs"]
mod trials;

corpora! {
    corpus_of_histograms_passes: "histogram", histogram::check;
    corpus_of_trials_passes: "trials", trials::check;
}
