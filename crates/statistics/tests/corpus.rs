//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/load_results.rs"]
mod load_results;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/trials.rs"]
mod trials;

corpora! {
    corpus_of_load_results_passes: "load_results", load_results::check;
    corpus_of_trials_passes: "trials", trials::check;
}
