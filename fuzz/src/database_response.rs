//! Invariants of whatever a database answers (MongoDB's wire protocol). Included by the fuzz target
//! and by the test that replays the corpus.

pub fn check(input: &[u8]) {
    service::node::check_database_response(input);
}
