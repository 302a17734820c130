//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn corpus_of_reflection_passes() {
    replay::replay("reflection", grpc::check_reflection);
}
