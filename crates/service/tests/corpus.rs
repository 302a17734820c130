//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/database_response.rs"]
mod database_response;
#[path = "../../../fuzz/src/node_response.rs"]
mod node_response;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/service_requests.rs"]
mod service_requests;

use replay::replay;

#[test]
fn corpus_of_requests_passes() {
    replay("service_requests", service_requests::check);
}

#[test]
fn corpus_of_responses_passes() {
    replay("node_response", node_response::check);
}

#[test]
fn corpus_of_database_responses_passes() {
    replay("database_response", database_response::check);
}
