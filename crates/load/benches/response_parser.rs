//! `cargo bench --bench response_parser`: how long the HTTP/1.1 parser takes for a 1 KB response as nginx
//! writes it, whole and in two pieces. Without `--bench`, as `cargo test` runs it, only a few rounds run, as
//! a smoke test.
//!
//! Not measured: reading from a socket, which costs far more.

use load::http1::{Parsed, ResponseParser};
use std::env;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

/// Batches; the fastest one counts, since anything else that the machine does only makes a batch slower.
const BATCHES: usize = 20;
const RESPONSES_PER_BATCH: u32 = 200_000;

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's result is its output")]
fn main() -> ExitCode {
    let measure = env::args().any(|argument| argument == "--bench");
    let (batches, responses) = if measure { (BATCHES, RESPONSES_PER_BATCH) } else { (2, 100) };
    let response = response();
    for (name, split) in [("whole", response.len()), ("in two pieces", 100)] {
        let pieces = response.split_at(split);
        let fastest_ns = (0..batches)
            .map(|_| batch_ns(pieces, responses))
            .try_fold(f64::INFINITY, |least, ns| ns.map(|ns| least.min(ns)));
        match fastest_ns {
            Some(ns) => println!("a response of 1 KB, {name}: {ns:.0} ns"),
            None => {
                eprintln!("error: a response of 1 KB, {name}, is not understood");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn response() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Fri, 20 Nov 2026 11:00:00 GMT\r\n\
                Content-Type: application/octet-stream\r\nContent-Length: 1024\r\nConnection: keep-alive\r\n\r\n";
    [head.as_bytes(), &[b'x'; 1024]].concat()
}

/// Nanoseconds per response; `None` if one does not end where it should, with the expected status.
fn batch_ns(pieces: (&[u8], &[u8]), responses: u32) -> Option<f64> {
    let mut parser = ResponseParser::new(false);
    let started = Instant::now();
    for _ in 0..responses {
        let mut outcome = None;
        for piece in [pieces.0, pieces.1].into_iter().filter(|piece| !piece.is_empty()) {
            let (taken, parsed) = parser.receive(black_box(piece)).ok()?;
            outcome = (taken == piece.len()).then_some(parsed);
        }
        match outcome {
            Some(Parsed::Response(end)) if end.status == 200 && end.reusable => {}
            _ => return None,
        }
    }
    Some(started.elapsed().as_nanos() as f64 / f64::from(responses))
}
