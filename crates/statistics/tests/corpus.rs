//! Replays the fuzz corpus (`fuzz/`).

#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/trials.rs"]
mod trials;

corpora! {
    corpus_of_trials_passes: "trials", trials::check;
}
