//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/zds.rs"]
mod zds;

use replay::replay;

#[test]
fn corpus_of_ztunnels_passes() {
    replay("zds", zds::check);
}

#[test]
fn corpus_of_proc_texts_passes() {
    replay("proc_texts", lab::observe::check_proc_texts);
}
