//! Replays the corpus that the fuzzers found worth keeping (`fuzz/`).

#[path = "../../../fuzz/src/fleet_connection.rs"]
mod fleet_connection;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/xds.rs"]
mod xds;

#[test]
fn corpus_of_xds_streams_passes() {
    replay::replay("xds_stream", xds::check);
}

#[test]
fn corpus_of_connections_passes() {
    replay::replay("fleet_connection", fleet_connection::check);
}
