//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/trials.rs"]
mod trials;

use replay::replay;

#[test]
fn corpus_of_trials_passes() {
    replay("trials", trials::check);
}
