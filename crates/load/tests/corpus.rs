//! Whatever the fuzzers found worth keeping, once more (`fuzz/`).

#[path = "../../../fuzz/src/http1.rs"]
mod http1;
#[path = "../../../fuzz/src/http2.rs"]
mod http2;

use std::fs;
use std::path::Path;

#[expect(clippy::print_stdout, reason = "shown where it fails: names the input")]
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut replayed = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("a folder that can be read").path();
        println!("{}", path.display());
        check(&fs::read(&path).expect("a file that can be read"));
        replayed += 1;
    }
    assert!(replayed >= 10, "{replayed} inputs in {}", folder.display());
}

#[test]
fn the_corpus_of_http_1_1_responses_holds() {
    replay("http1_response", http1::check);
}

#[test]
fn the_corpus_of_http_2_connections_holds() {
    replay("http2_connection", http2::check);
}
