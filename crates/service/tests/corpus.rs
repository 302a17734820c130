//! Replays the fuzz corpus (`fuzz/`).

#[path = "../../../fuzz/src/database_response.rs"]
mod database_response;
#[path = "../../../fuzz/src/node_response.rs"]
mod node_response;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/service_requests.rs"]
mod service_requests;

corpora! {
    corpus_of_requests_passes: "service_requests", service_requests::check;
    corpus_of_responses_passes: "node_response", node_response::check;
    corpus_of_database_responses_passes: "database_response", database_response::check;
}
