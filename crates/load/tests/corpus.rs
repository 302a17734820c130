//! Replays the inputs that the fuzzers kept (`fuzz/`).

#[path = "../../../fuzz/src/http1.rs"]
mod http1;
#[path = "../../../fuzz/src/http2.rs"]
mod http2;
#[path = "../../../fuzz/src/recording.rs"]
mod recording;
#[macro_use]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/websocket.rs"]
mod websocket;

corpora! {
    http1_response_corpus_passes: "http1_response", http1::check;
    http2_connection_corpus_passes: "http2_connection", http2::check;
    recording_corpus_passes: "recording", recording::check;
    websocket_corpus_passes: "websocket", websocket::check;
}
