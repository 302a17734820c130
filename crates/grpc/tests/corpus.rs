//! Replays the fuzz corpus (`fuzz/`).

#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

corpora! {
    corpus_of_reflection_passes: "reflection", grpc::check_reflection;
}
