//! Replays the corpus that the fuzzers found worth keeping (`fuzz/`).

#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/xds.rs"]
mod xds;

#[test]
fn the_corpus_of_xds_streams_holds() {
    replay::replay("xds_stream", xds::check);
}
