//! `meshmeter collect-spans` as a process: its counts, and its memory whatever is sent.

mod command;

use command::Serving;
use procfs_core::FromRead as _;
use procfs_core::process::Status;
use prost::encoding::{WireType, encode_key, encode_varint};
use rustix::process::Pid;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const MAX_EXPORT_BYTES: usize = 4 << 20;

/// A field of a message that contains bytes.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut message);
    encode_varint(content.len() as u64, &mut message);
    message.extend_from_slice(content);
    message
}

/// An export of this size of spans without content, two bytes each, and their number.
fn smallest_spans(bytes: usize) -> (Vec<u8>, usize) {
    // Two fields around them, of six bytes at most.
    let spans = (bytes - 12) / 2;
    (field(1, &field(2, &field(2, b"").repeat(spans))), spans)
}

fn post(collector: &Serving, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(collector.authority()).unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The collector may respond and close before the end of the body.
    let _ = stream.write_all(body);
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

/// The most memory that a process has had.
fn peak_bytes(process: Pid) -> usize {
    let status = Status::from_file(format!("/proc/{}/status", process.as_raw_nonzero())).unwrap();
    usize::try_from(status.vmhwm.unwrap()).unwrap() << 10
}

#[test]
fn memory_of_an_export_is_of_the_order_of_its_size() {
    let collector = Serving::of("collect-spans", &[]);
    assert!(collector.get("/counters").ends_with("{\"exports\":0,\"unreadable\":0,\"spans\":{}}"));
    let before = peak_bytes(collector.process());
    let (export, spans) = smallest_spans(MAX_EXPORT_BYTES);
    let response = post(&collector, &export);
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    let counters = collector.get("/counters");
    assert!(
        counters.ends_with(&format!("{{\"exports\":1,\"unreadable\":0,\"spans\":{{\"\":{spans}}}}}")),
        "{counters}"
    );
    let taken = peak_bytes(collector.process()) - before;
    assert!(taken < 4 * MAX_EXPORT_BYTES, "{taken} bytes for an export of {MAX_EXPORT_BYTES}");

    post(&collector, &smallest_spans(2 * MAX_EXPORT_BYTES).0);
    assert!(collector.get("/counters").contains("\"exports\":1,\"unreadable\":1,"));
}

#[test]
fn spans_are_kept_on_request_alone() {
    let collector = Serving::of("collect-spans", &[]);
    let export = smallest_spans(100).0;
    post(&collector, &export);
    assert!(collector.get("/spans").starts_with("HTTP/1.1 404"), "none is kept");
    let mut stream = TcpStream::connect(collector.authority()).unwrap();
    stream.write_all(b"PUT /spans HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert!(collector.get("/spans").ends_with("\r\n\r\n"), "those before are not");
    post(&collector, &export);
    post(&collector, b"no export");
    let spans = collector.get("/spans");
    assert!(spans.contains("meshmeter-left-out: 0\r\n"), "{spans}");
    assert_eq!(spans.matches("\"traceId\"").count(), 44, "{spans}");
}
