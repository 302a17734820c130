//! Replays the corpus that the fuzzers found worth keeping (`fuzz/`).

#[path = "../../../fuzz/src/fleet_connection.rs"]
mod fleet_connection;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/xds.rs"]
mod xds;

corpora! {
    corpus_of_xds_streams_passes: "xds_stream", xds::check;
    corpus_of_connections_passes: "fleet_connection", fleet_connection::check;
}
