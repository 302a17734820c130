//! `meshmeter load` of gRPC against `meshmeter serve`.

mod command;

use command::{Serving, meshmeter, run, stderr, stdout};
use results::{LoadResult, SpokenProtocol};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

const ECHO: &str = "meshmeter.v1.Echo";
const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../service/proto");

fn url(server: &Serving, method: &str) -> String {
    format!("grpc://{}/{ECHO}/{method}", server.authority())
}

/// Result of twenty calls from two clients.
fn result_of(arguments: &[&str]) -> LoadResult {
    let usual = ["load", "--progress", "off", "--json", "-", "--clients", "2", "--requests", "20"];
    let output = run(&[&usual, arguments].concat());
    let result = serde_json::from_slice(&output.stdout);
    let result: LoadResult =
        result.unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    assert_eq!(result.protocol, SpokenProtocol::Grpc);
    assert_eq!(result.requests.completed, 20, "{:?}", result.requests);
    result
}

/// Error output and exit status of a command that fails.
fn failure(arguments: &[&str]) -> (String, Option<i32>) {
    let output = run(&[&["load", "--clients", "1", "--duration", "100ms"], arguments].concat());
    (stderr(&output), output.status.code())
}

#[test]
fn url_without_path_calls_health_check() {
    let server = Serving::start(&[]);
    let result = result_of(&[&format!("grpc://{}", server.authority())]);
    assert_eq!(result.requests.grpc_status["OK"], 20);
    assert_eq!(server.requests(), 20, "nothing was asked before the run");
}

#[test]
fn the_server_describes_its_methods_and_counts_the_calls() {
    let server = Serving::start(&[]);
    let message = r#"{"payload": "aGVsbG8=", "replyBytes": "1000"}"#;
    let result = result_of(&[&url(&server, "Unary"), "--message", message]);
    assert_eq!(result.requests.grpc_status["OK"], 20);
    assert!(result.bytes.received > 20 * 1000, "{:?}", result.bytes);
    let messages = result.grpc.unwrap();
    assert_eq!((messages.messages_sent, messages.messages_received), (20, 20));
    // Reflection is a call too.
    assert!(server.requests() >= 20);
}

#[test]
fn every_kind_of_stream_follows_its_description() {
    let server = Serving::start(&[]);
    let proto = format!("{PROTO}/meshmeter/v1/echo.proto");
    for (method, arguments, sent, received) in [
        ("ServerStreaming", &["--message", r#"{"replies": 3}"#][..], 1, 3),
        ("ClientStreaming", &["--stream-messages", "7"], 7, 1),
        ("ClientStreaming", &["--message", r#"[{}, {"payload": "AA=="}]"#], 2, 1),
        ("BidiStreaming", &["--stream-messages", "7"], 7, 7),
        ("BidiStreaming", &["--stream-messages", "7", "--bidi", "all-at-once"], 7, 7),
    ] {
        let url = url(&server, method);
        let result = result_of(&[&["--proto", &proto, &url], arguments].concat());
        let messages = result.grpc.unwrap();
        let counted = (messages.messages_sent, messages.messages_received);
        assert_eq!(counted, (20 * sent, 20 * received), "{method} {arguments:?}");
        let gaps = if method == "ClientStreaming" { 0 } else { 20 * (received - 1) };
        assert_eq!(messages.message_time_us.count, gaps, "{method} {arguments:?}");
    }
    assert_eq!(server.requests(), 100, "with --proto nothing is asked before the run");
}

#[test]
fn a_dialogue_waits_for_the_server_message_by_message() {
    let server = Serving::start(&["--delay", "5ms"]);
    let url = url(&server, "BidiStreaming");
    let result = result_of(&["--stream-messages", "4", &url]);
    let messages = result.grpc.unwrap();
    assert!(messages.first_message_time_us.min >= 5000.0, "{:?}", messages.first_message_time_us);
    assert!(messages.message_time_us.min >= 5000.0, "{:?}", messages.message_time_us);
    assert!(result.response_time_us.min >= 20_000.0, "{:?}", result.response_time_us);
}

#[test]
fn statuses_are_errors_and_the_text_names_them() {
    let server = Serving::start(&[]);
    let url = url(&server, "Unary");
    let output = run(&["load", "--clients", "1", "--requests", "9", "--message", r#"{"status": 14}"#, &url]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("UNAVAILABLE: 9") && text.contains("errors: 100.00 %"), "{text}");
}

#[test]
fn methods_that_cannot_be_called_are_reported_before_the_run() {
    let server = Serving::start(&[]);
    let unary = url(&server, "Unary");
    let absent = url(&server, "Shout");
    let unknown = format!("grpc://{}/meshmeter.v1.Ekko/Unary", server.authority());
    let no_method = format!("grpc://{}/meshmeter.v1.Echo", server.authority());
    let proto = format!("{PROTO}/meshmeter/v1/echo.proto");
    for (arguments, expected) in [
        (&[&*absent][..], "it has: Unary, ServerStreaming, ClientStreaming, BidiStreaming"),
        (&[&unknown], "meshmeter.v1.Echo"),
        (&[&absent, "--proto", &proto], "it has: Unary"),
        (&[&no_method], "names no gRPC method"),
        (&[&unary, "--message", r#"{"payload": 3}"#], "the field `payload`"),
        (&[&unary, "--message", r#"{"paylod": ""}"#], "payload, replyBytes, replies, delayUs, status"),
        (&[&unary, "--message", "{"], "as JSON"),
        (&[&unary, "--message", r#"{"payload": "a{1..9}"}"#], "--message has a range of numbers"),
        (&[&unary, "--message", "@/does/not/exist"], "/does/not/exist"),
        (&[&unary, "--proto", "/does/not/exist.proto"], "/does/not/exist.proto"),
        (&[&unary, "--stream-messages", "2"], "takes one message"),
        (&[&unary, "--bidi", "all-at-once"], "streams on both sides"),
        (&[&unary, "--body", "x"], "--message"),
        (&[&unary, "--method", "PUT"], "always a POST"),
        (&[&server.url(), "--message", "{}"], "for grpc:// and grpcs:// URLs"),
        (&[&unary, &server.url()], "of another kind"),
    ] {
        let (said, status) = failure(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(status, Some(2), "{arguments:?}: {said}");
    }
}

#[test]
fn unreachable_reflection_is_an_environment_failure() {
    let server = Serving::start(&[]);
    let over_tls = url(&server, "Unary").replace("grpc://", "grpcs://");
    let nowhere = format!("grpc://127.0.0.1:1/{ECHO}/Unary");
    for (arguments, expected) in
        [(&[&*over_tls, "--insecure"][..], "TLS handshake"), (&[&nowhere], "connect to 127.0.0.1:1")]
    {
        let (said, status) = failure(arguments);
        assert!(said.contains(expected) && said.contains("hint"), "{arguments:?}: {said}");
        assert_eq!(status, Some(3), "{arguments:?}: {said}");
    }
}

/// `meshmeter serve` with HTTPS.
struct ServingTls {
    child: Child,
    address: String,
}

impl ServingTls {
    fn start(authority_file: &str) -> Self {
        let mut child = meshmeter()
            .args(["serve", "--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0", "--tls"])
            .args(["--tls-name", "shop.example", "--tls-ca-out", authority_file])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let mut addresses =
            lines.filter_map(|line| line.strip_prefix("listening on https://").map(str::to_owned));
        let address = addresses.next().expect("it says where it listens for HTTPS");
        Self { child, address }
    }
}

impl Drop for ServingTls {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn reflection_and_calls_over_tls_verify_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem").display().to_string();
    let server = ServingTls::start(&authority);
    // The name does not resolve: --connect-to gives the address, for both.
    let url = format!("grpcs://shop.example:9/{ECHO}/Unary");
    let there = ["--connect-to", &server.address, &url];
    let result = result_of(&[&["--cacert", &authority][..], &there].concat());
    assert_eq!(result.requests.grpc_status["OK"], 20);
    result_of(&[&["--insecure"][..], &there].concat());
    let (said, status) = failure(&[&["--cacert", &authority, "--sni", "other.example"][..], &there].concat());
    assert!(said.contains("TLS handshake") && status == Some(3), "{status:?}: {said}");
}

#[test]
fn messages_come_from_a_file_in_turn() {
    let server = Serving::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("messages.json");
    fs::write(&file, "{\"status\": 5}\n{}\n").unwrap();
    let result = result_of(&[&url(&server, "Unary"), "--message", &format!("@{}", file.display())]);
    assert_eq!(result.requests.grpc_status["NOT_FOUND"], 10);
    assert_eq!(result.requests.grpc_status["OK"], 10);
}
