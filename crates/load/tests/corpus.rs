//! Whatever the fuzzers found worth keeping, once more (`fuzz/`).

#[path = "../../../fuzz/src/http1.rs"]
mod http1;
#[path = "../../../fuzz/src/http2.rs"]
mod http2;

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn the_corpus_of_http_1_1_responses_holds() {
    replay("http1_response", http1::check);
}

#[test]
fn the_corpus_of_http_2_connections_holds() {
    replay("http2_connection", http2::check);
}
