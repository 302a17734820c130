//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/zds.rs"]
mod zds;

#[test]
fn corpus_of_ztunnels_passes() {
    replay::replay("zds", zds::check);
}
