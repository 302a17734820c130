//! Replays the inputs that the fuzzers kept (`fuzz/`).

#[path = "../../../fuzz/src/http1.rs"]
mod http1;
#[path = "../../../fuzz/src/http2.rs"]
mod http2;

#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn http1_response_corpus_passes() {
    replay("http1_response", http1::check);
}

#[test]
fn http2_connection_corpus_passes() {
    replay("http2_connection", http2::check);
}
