//! Responses of an admin port: good, bad, long and endless.

use super::dial::UnixSocket;
use super::*;
use crate::proxy::CounterSource as _;
use experiment::environment::error_chain;
use results::ProxyHeap;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

/// A proxy that answers one request with these bytes, or stays silent until its client disconnects.
struct FakeProxy {
    folder: tempfile::TempDir,
    thread: JoinHandle<()>,
    /// Client timeout: short if no response is expected, otherwise longer than the response takes on a busy machine.
    limit: Duration,
}

impl FakeProxy {
    fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("admin")).unwrap();
        let limit = if bytes.is_empty() { Duration::from_millis(300) } else { Duration::from_secs(60) };
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 4096];
            let _ = stream.read(&mut question).unwrap();
            let _ = stream.write_all(&bytes);
            if bytes.is_empty() {
                let _ = stream.read(&mut question);
            }
        });
        Self { folder, thread, limit }
    }

    fn ask<T>(self, question: impl Fn(&Admin) -> Result<T, AdminError>) -> Result<T, AdminError> {
        let mut admin = Admin::new("client-proxy", UnixSocket(self.folder.path().join("admin")));
        admin.timeout = self.limit;
        let answer = question(&admin);
        self.thread.join().unwrap();
        answer
    }
}

#[test]
fn counters_and_heap_are_read() {
    let counters = FakeProxy::answering(
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"stats\":[{\"name\":\"a.b\",\"value\":18446744}]}",
    );
    assert_eq!(counters.ask(Admin::counters).unwrap()["a.b"], 18_446_744);
    let heap = FakeProxy::answering(
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"allocated\":\"5\",\"heap_size\":\"7\",\"other\":\"1\"}",
    );
    assert_eq!(heap.ask(Admin::heap).unwrap().unwrap(), ProxyHeap { allocated_bytes: 5, heap_bytes: 7 });
}

#[test]
fn bad_response_error_names_proxy_and_cause() {
    let cases: [(&'static [u8], &str); 5] = [
        (b"", "no answer within 300 ms"),
        (b"SSH-2.0-OpenSSH\r\n", "no whole answer: invalid HTTP version parsed"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{",
            "no whole answer: error reading a body from connection",
        ),
        (b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", "it answered with status 500"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
            "an answer that cannot be read: missing field `stats`",
        ),
    ];
    for (bytes, expected) in cases {
        let error = FakeProxy::answering(bytes).ask(Admin::counters).unwrap_err();
        let text = error_chain(&error);
        assert!(text.starts_with(&format!("query /stats of client-proxy: {expected}")), "{text}");
    }
}

/// A response whose body has one byte more than may be buffered.
fn long() -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; MAX_RESPONSE_BYTES as usize + 1]].concat()
}

fn length(response: &mut dyn Read) -> Result<u64, serde_json::Error> {
    std::io::copy(response, &mut std::io::sink()).map_err(serde_json::Error::io)
}

#[test]
fn endless_response_is_cut_off() {
    let error = FakeProxy::answering(long()).ask(Admin::heap).unwrap_err();
    let expected = format!(
        "query /memory of client-proxy: no whole answer: it is longer than {MAX_RESPONSE_BYTES} bytes"
    );
    assert_eq!(error_chain(&error), expected);
    let read =
        |admin: &Admin| admin.exchange("/stats", None, Limits { bytes: 1000, ..admin.limits() }, length);
    let error = FakeProxy::answering(long()).ask(read).unwrap_err();
    assert!(error_chain(&error).ends_with("it is longer than 1000 bytes"), "{}", error_chain(&error));
}

#[test]
fn long_response_is_streamed_and_early_end_is_error() {
    let whole = FakeProxy::answering(long()).ask(|admin| admin.get_long("/config_dump")).unwrap();
    assert_eq!(whole.len() as u64, MAX_RESPONSE_BYTES + 1);
    let read = FakeProxy::answering(long()).ask(|admin| admin.read("/config_dump", length));
    assert_eq!(read.unwrap(), MAX_RESPONSE_BYTES + 1);
    let short = FakeProxy::answering(b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{");
    let error = short.ask(|admin| admin.read("/config_dump", length)).unwrap_err();
    assert!(error_chain(&error).starts_with("query /config_dump of client-proxy: no whole answer: "));
    let refused = FakeProxy::answering(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n");
    let error = refused.ask(|admin| admin.read("/config_dump", length)).unwrap_err();
    assert!(error_chain(&error).ends_with("it answered with status 500"));
}

#[test]
fn proxy_starting_or_without_socket_is_not_ready() {
    let starting = FakeProxy::answering(b"HTTP/1.1 503 Wait\r\ncontent-length: 0\r\n\r\n");
    assert!(!starting.ask(Admin::is_ready).unwrap());
    assert!(!Admin::new("gateway", UnixSocket("/nowhere".into())).is_ready().unwrap());
    let garbage = FakeProxy::answering(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n");
    assert!(garbage.ask(Admin::is_ready).is_err());
}

#[test]
fn posted_message_arrives_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin");
    let listener = UnixListener::bind(&path).unwrap();
    let message = vec![7; 100_000];
    let (head, length) = (b"POST /v3/kv/txn HTTP/1.1\r\n", serde_json::to_vec(&message).unwrap().len());
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        let head_length = |received: &[u8]| received.windows(4).position(|four| four == b"\r\n\r\n");
        while head_length(&received).is_none_or(|head| received.len() < head + 4 + length) {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0);
            received.extend_from_slice(&piece[..read]);
        }
        assert!(received.starts_with(head));
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue").unwrap();
    });
    let answer: bool = Admin::new("etcd", UnixSocket(path)).post_json("/v3/kv/txn", &message).unwrap();
    thread.join().unwrap();
    assert!(answer);
}
