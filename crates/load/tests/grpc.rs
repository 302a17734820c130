//! gRPC through the engine, against a real server and against misbehaving ones. The counts of the server are
//! compared with those of the engine.

mod grpc_servers;
mod specs;

use bytes::Bytes;
use grpc_servers::{GrpcServer, REPEATED, good, head};
use load::{GrpcCall, LoadSpec, Protocol, RequestTemplate, ScheduleSpec, ThinkTime};
use results::{LoadResult, SpokenProtocol};
use specs::Silent;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A message with this text in field 1.
fn word(text: &str) -> Vec<u8> {
    [&[0x0a, text.len() as u8], text.as_bytes()].concat()
}

fn number(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap()
}

/// Usual number of calls of the four clients together.
const CALLS: u64 = 60;
/// Timeout for things that should not take time at all.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Four clients on two connections.
fn load(server: &GrpcServer, path: &str, call: GrpcCall) -> LoadResult {
    load_within(server, path, call, CALLS, TEST_TIMEOUT)
}

fn load_within(server: &GrpcServer, path: &str, call: GrpcCall, calls: u64, timeout: Duration) -> LoadResult {
    let schedule = ScheduleSpec::Closed { clients: 4, think_time: ThinkTime::NONE, requests: Some(calls) };
    let template = RequestTemplate::default();
    let mut spec = LoadSpec {
        protocol: Protocol::Http2 { streams: 2 },
        connections: 2,
        timeout,
        ..specs::spec(&[server.url(path)], &template, schedule, TEST_TIMEOUT)
    };
    spec.targets.servers[0].requests[0].make_call(path, call, timeout);
    let result = load::run(&spec, &AtomicBool::new(false), &mut Silent).expect("the engine runs");
    assert_eq!(result.protocol, SpokenProtocol::Grpc);
    let requests = &result.requests;
    assert_eq!(requests.sent, requests.completed + requests.failed, "{requests:?}");
    assert_eq!(requests.grpc_status.values().sum::<u64>(), requests.completed, "{requests:?}");
    assert_eq!(server.calls(), requests.sent, "the server's own count: {requests:?}");
    assert_eq!(requests.sent, calls);
    result
}

/// Asserts that both sides counted the same messages.
fn assert_messages(server: &GrpcServer, result: &LoadResult) {
    let messages = result.grpc.as_ref().unwrap();
    assert_eq!(messages.messages_sent, server.seen.received.load(Ordering::SeqCst), "received by the server");
    assert_eq!(messages.messages_received, server.seen.sent.load(Ordering::SeqCst), "sent by the server");
}

fn assert_all_ok(result: &LoadResult) {
    assert_eq!(result.requests.failed, 0, "{:?}", result.requests);
    assert_eq!(result.requests.grpc_status["OK"], result.requests.completed);
    let others = specs::reasons_but_of_busyness(result);
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn unary_calls_are_counted_by_both_sides() {
    let server = GrpcServer::start();
    let result = load(&server, "/test.Words/Say", GrpcCall::unary(&[word("a"), word("bb")], false).unwrap());
    assert_all_ok(&result);
    assert_messages(&server, &result);
    let messages = result.grpc.as_ref().unwrap();
    assert_eq!(messages.first_message_time_us.count, 0, "a single message comes with the end");
    assert_eq!(messages.messages_sent, result.requests.completed);
}

#[test]
fn server_stream_is_timed_per_message() {
    let server = GrpcServer::start();
    let result = load(&server, "/test.Words/Repeat", GrpcCall::unary(&[word("a")], true).unwrap());
    assert_all_ok(&result);
    assert_messages(&server, &result);
    let (messages, calls) = (result.grpc.as_ref().unwrap(), result.requests.completed);
    assert_eq!(messages.messages_received, calls * REPEATED);
    assert_eq!(messages.first_message_time_us.count, calls);
    assert_eq!(messages.message_time_us.count, calls * (REPEATED - 1));
    assert!(messages.first_message_time_us.max <= result.response_time_us.max);
}

#[test]
fn client_stream_is_sent_completely() {
    let server = GrpcServer::start();
    // More than fits into the server's window at once.
    let long = word(&"x".repeat(100));
    let call = GrpcCall::stream(&[long.clone(), word("b")], number(2000), false).unwrap();
    let result = load_within(&server, "/test.Words/Count", call, 8, TEST_TIMEOUT);
    assert_all_ok(&result);
    assert_messages(&server, &result);
    let calls = result.requests.completed;
    assert_eq!(result.grpc.as_ref().unwrap().messages_sent, 2000 * calls);
    assert!(result.bytes.sent > calls * 1000 * (long.len() + 3 + 2 * 5) as u64);
}

#[test]
fn dialogue_measures_each_round_trip() {
    let server = GrpcServer::start();
    let call = GrpcCall::dialogue(&[word("a")], number(20)).unwrap();
    let result = load(&server, "/test.Words/Talk", call);
    assert_all_ok(&result);
    assert_messages(&server, &result);
    let (messages, calls) = (result.grpc.as_ref().unwrap(), result.requests.completed);
    assert_eq!((messages.messages_sent, messages.messages_received), (20 * calls, 20 * calls));
    assert_eq!(messages.message_time_us.count, 19 * calls);
    // In sequence: in total they cannot be shorter than their parts.
    let parts = messages.first_message_time_us.mean.unwrap() + 19.0 * messages.message_time_us.mean.unwrap();
    assert!(
        parts <= 1.05 * result.response_time_us.mean.unwrap(),
        "{parts} of {}",
        result.response_time_us.mean.unwrap()
    );
}

#[test]
fn bidirectional_stream_can_send_all_messages_at_once() {
    let server = GrpcServer::start();
    let call = GrpcCall::stream(&[word("a")], number(20), true).unwrap();
    let result = load(&server, "/test.Words/Talk", call);
    assert_all_ok(&result);
    assert_messages(&server, &result);
}

#[test]
fn statuses_other_than_ok_are_errors() {
    let server = GrpcServer::start();
    let result =
        load(&server, "/test.Words/Say", GrpcCall::unary(&[word("a"), word("fail")], false).unwrap());
    assert_eq!(result.requests.failed, 0);
    // The two messages alternate on each of two connections.
    let (bad, good) = (result.requests.grpc_status["UNAVAILABLE"], result.requests.grpc_status["OK"]);
    assert!(bad + good == CALLS && bad.abs_diff(good) <= 2, "{bad} and {good}");
    assert_eq!(result.requests.status["200"], result.requests.completed);
    assert!(result.verdict.reasons.iter().any(|reason| reason.starts_with("errors")), "{:?}", result.verdict);

    let server = GrpcServer::start();
    let result = load(&server, "/test.Words/Shout", GrpcCall::unary(&[word("a")], false).unwrap());
    assert_eq!(result.requests.grpc_status["UNIMPLEMENTED"], result.requests.completed);
}

fn unary() -> GrpcCall {
    GrpcCall::unary(&[word("a")], false).unwrap()
}

/// The only error kind; all calls failed with it.
fn only_kind(result: &LoadResult) -> &str {
    assert_eq!(result.requests.completed, 0, "{:?}", result.requests);
    assert_eq!(result.requests.errors.len(), 1, "{:?}", result.requests);
    result.requests.errors.keys().next().unwrap()
}

#[test]
fn non_grpc_responses_are_errors_of_their_kind() {
    let server = GrpcServer::misbehaving(|mut respond, _| {
        let mut stream = respond.send_response(head(), false).unwrap();
        stream.send_data(Bytes::from_static(&[0; 5]), true).unwrap();
    });
    assert_eq!(only_kind(&load(&server, "/a.B/C", unary())), "grpc-status-missing");

    let server = GrpcServer::misbehaving(|mut respond, _| {
        let page = http::Response::builder().header("content-type", "text/html").body(()).unwrap();
        // The client may have cancelled before the page is sent.
        if let Ok(mut stream) = respond.send_response(page, false) {
            let _ = stream.send_data(Bytes::from_static(b"<html>"), true);
        }
    });
    assert_eq!(only_kind(&load(&server, "/a.B/C", unary())), "grpc-content-type");

    let server = GrpcServer::misbehaving(|mut respond, _| {
        let bad_gateway = http::Response::builder().status(502).body(()).unwrap();
        respond.send_response(bad_gateway, true).unwrap();
    });
    assert_eq!(only_kind(&load(&server, "/a.B/C", unary())), "grpc-http-status");
}

#[test]
fn reset_within_message_fails_only_that_call() {
    let server = GrpcServer::misbehaving(|mut respond, number| {
        if number % 2 == 0 {
            return good(respond);
        }
        let mut stream = respond.send_response(head(), false).unwrap();
        stream.send_data(Bytes::from_static(&[0, 0, 0, 0, 9, 1]), false).unwrap();
        stream.send_reset(h2::Reason::INTERNAL_ERROR);
    });
    let result = load(&server, "/a.B/C", unary());
    let requests = &result.requests;
    assert_eq!(requests.errors.keys().collect::<Vec<_>>(), ["stream-reset"]);
    assert!(requests.completed > 0 && requests.failed > 0, "{requests:?}");
    assert!(result.connect_time_us.count == 2, "no connection was lost");
}

#[test]
fn server_sending_goaway_gets_new_connection() {
    let server = GrpcServer::leaving_after(10);
    let urls = vec![server.url("/a.B/C")];
    let result = load(&server, "/a.B/C", unary());
    assert!(result.requests.completed > CALLS / 2, "{urls:?}: {:?}", result.requests);
    assert!(result.connect_time_us.count > 2);
    assert!(result.requests.errors.keys().all(|kind| kind == "goaway"), "{:?}", result.requests);
}

#[test]
fn unanswered_call_ends_with_timeout() {
    let server = GrpcServer::misbehaving(|mut respond, _| {
        // Only the head; held, since dropping it would reset the stream.
        std::mem::forget(respond.send_response(head(), false).unwrap());
    });
    let result = load_within(&server, "/a.B/C", unary(), 4, Duration::from_secs(4));
    assert_eq!(only_kind(&result), "timeout");
}
