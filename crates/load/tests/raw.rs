//! Raw messages over TCP, against servers that echo, reply wrongly, too long or not at all.

mod specs;

use load::{ExpectedReply, LoadSpec, Protocol, RequestTemplate, ScheduleSpec, ThinkTime, pattern};
use results::LoadResult;
use specs::Silent;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const MESSAGE_BYTES: usize = 300;
const CONNECTIONS: usize = 3;
/// Timeout for things that should not take time at all.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs 3 clients that together send `messages` messages to a server, which calls `answer` per complete
/// message. Returns the result and the server's own count of messages.
fn run(
    reply: ExpectedReply,
    wanted: u64,
    timeout: Duration,
    answer: impl Fn(&mut TcpStream) -> bool + Sync,
) -> (LoadResult, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp://{}", listener.local_addr().unwrap());
    let template = RequestTemplate { body: pattern(MESSAGE_BYTES).into(), ..RequestTemplate::default() };
    let schedule =
        ScheduleSpec::Closed { clients: CONNECTIONS, think_time: ThinkTime::NONE, requests: Some(wanted) };
    let spec = LoadSpec {
        protocol: Protocol::Raw(reply),
        connections: CONNECTIONS,
        timeout,
        ..specs::spec(&[url], &template, schedule, TEST_TIMEOUT)
    };
    let (done, messages) = (AtomicBool::new(false), Arc::new(AtomicU64::new(0)));
    let result = std::thread::scope(|scope| {
        let (done, messages, answer) = (&done, &messages, &answer);
        let address = listener.local_addr().unwrap();
        scope.spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if done.load(Ordering::SeqCst) {
                    return;
                }
                scope.spawn(move || serve(stream, messages, answer));
            }
        });
        let result = load::run(&spec, &AtomicBool::new(false), &mut Silent).unwrap();
        done.store(true, Ordering::SeqCst);
        // Wakes the listener.
        TcpStream::connect(address).unwrap();
        result
    });
    let requests = &result.requests;
    assert_eq!((requests.sent, requests.completed + requests.failed), (wanted, wanted), "{requests:?}");
    assert!(requests.status.is_empty(), "{requests:?}");
    (result, messages.load(Ordering::SeqCst))
}

fn serve(mut stream: TcpStream, messages: &AtomicU64, answer: &(impl Fn(&mut TcpStream) -> bool + Sync)) {
    let mut message = [0; MESSAGE_BYTES];
    while stream.read_exact(&mut message).is_ok() {
        assert_eq!(message.as_slice(), pattern(MESSAGE_BYTES), "the message is the pattern");
        messages.fetch_add(1, Ordering::SeqCst);
        if !answer(&mut stream) {
            return;
        }
    }
}

const CHECKED: ExpectedReply = ExpectedReply { bytes: 1000, checked: true };
/// Number of messages that the clients send together …
const MESSAGES: u64 = 60;
/// … and if each failure costs a connection, which is reopened after longer and longer pauses.
const FEW: u64 = 9;

#[test]
fn replies_with_expected_size_and_pattern_are_complete() {
    let (result, messages) =
        run(CHECKED, MESSAGES, TEST_TIMEOUT, |stream| stream.write_all(&pattern(1000)).is_ok());
    let requests = &result.requests;
    assert_eq!((requests.completed, requests.failed), (MESSAGES, 0), "{requests:?}");
    assert_eq!(messages, requests.sent);
    assert_eq!(result.bytes.received, 1000 * requests.completed);
    assert_eq!(result.bytes.sent, MESSAGE_BYTES as u64 * requests.sent);
}

#[test]
fn wrong_short_and_surplus_replies_are_distinguished() {
    let (result, messages) = run(CHECKED, FEW, TEST_TIMEOUT, |stream| stream.write_all(&[7; 1000]).is_ok());
    assert_eq!(result.requests.errors["wrong-reply"], result.requests.sent);
    assert_eq!(messages, result.requests.sent);
    let (result, messages) = run(CHECKED, FEW, TEST_TIMEOUT, |stream| {
        _ = stream.write_all(&pattern(999));
        false
    });
    assert_eq!(result.requests.errors["closed"], result.requests.sent, "{:?}", result.requests);
    assert_eq!(messages, result.requests.sent);
    let (result, _) = run(CHECKED, FEW, TEST_TIMEOUT, |stream| stream.write_all(&pattern(1001)).is_ok());
    assert!(result.requests.completed > 0, "{:?}", result.requests);
    assert!(result.requests.errors["surplus-bytes"] > 0, "{:?}", result.requests);
    let unchecked = ExpectedReply { checked: false, ..CHECKED };
    let (result, _) = run(unchecked, FEW, TEST_TIMEOUT, |stream| stream.write_all(&[7; 1000]).is_ok());
    assert_eq!(result.requests.failed, 0, "{:?}", result.requests);
}

#[test]
fn missing_reply_is_timeout() {
    // Connections open within it on a machine that stalls for seconds.
    let timeout = Duration::from_secs(4);
    let (result, messages) =
        run(CHECKED, CONNECTIONS as u64, timeout, |stream| stream.write_all(&pattern(10)).is_ok());
    assert_eq!(result.requests.errors["timeout"], CONNECTIONS as u64, "{:?}", result.requests);
    assert_eq!(messages, CONNECTIONS as u64);
}
