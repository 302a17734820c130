use super::*;
use crate::error::ErrorKind;
use crate::network::record::{Record, RecordHead, RecordKind, RecordReader, push, push_data};
use crate::target::{Body, Header, Request, RequestTemplate, resolve};
use http::Method;
use http3::frame::{self, kind};
use http3::{ErrorCode, control, qpack};
use proptest::prelude::*;

/// The server's control stream, and one of requests.
const SERVER_CONTROL: u64 = 3;
const REQUEST: u64 = 0;

/// A record of data that the server sent on a stream.
fn sent(stream: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_data(RecordKind::Data, stream, &mut out, |out| out.extend_from_slice(bytes));
    out
}

fn other(kind: RecordKind, stream: u64, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    push(kind, stream, number, &mut out);
    out
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::push_fields(&mut out, |out| {
        qpack::begin(out);
        for (name, value) in fields {
            qpack::push(name.as_bytes(), value.as_bytes(), false, out);
        }
    });
    out
}

fn data(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::push(kind::DATA, content, &mut out);
    out
}

fn settings() -> Vec<u8> {
    let mut out = Vec::new();
    control::begin(65_536, &mut out);
    sent(SERVER_CONTROL, &out)
}

fn neutral(method: Method, body: &[u8], fields: &[(&str, &str)]) -> Request {
    let headers = fields.iter().map(|(name, value)| Header::new(name, value).unwrap()).collect();
    let template = RequestTemplate { method, body: body.into(), headers, ..RequestTemplate::default() };
    resolve(&["https://127.0.0.1:8443/cart".to_owned()], &template).expect("a good URL").servers[0].requests
        [0]
    .clone()
}

/// A connection with room for `streams` requests, of which `begun` are begun.
fn begun(streams: usize, begun: usize) -> Http3Connection {
    let mut connection = Http3Connection::new(streams);
    connection.open(&mut Vec::new());
    let rooms: Vec<u8> =
        (0..streams as u64).flat_map(|index| other(RecordKind::Room, 4 * index, 0)).collect();
    assert_eq!(all(&mut connection, &rooms), Ok(vec![Parsed::Room]));
    let request = Http3Request::new(&neutral(Method::GET, b"", &[]));
    for slot in 0..begun {
        assert!(connection.can_send());
        assert_eq!(connection.begin(&request, [].as_slice().into(), &mut Vec::new()), slot);
    }
    connection
}

/// The results of these records.
fn all(connection: &mut Http3Connection, bytes: &[u8]) -> Result<Vec<Parsed>, ErrorKind> {
    feed(connection, bytes, bytes.len().max(1), &mut Vec::new())
}

/// The same, in parts of this size; appends replies to `out`.
fn feed(
    connection: &mut Http3Connection,
    bytes: &[u8],
    step: usize,
    out: &mut Vec<u8>,
) -> Result<Vec<Parsed>, ErrorKind> {
    let mut results = Vec::new();
    for mut part in bytes.chunks(step) {
        while !part.is_empty() {
            let (taken, parsed) = connection.receive(part, out).map_err(|error| error.0)?;
            part = &part[taken..];
            if parsed == Parsed::Incomplete {
                assert!(part.is_empty(), "no result before the end");
            } else {
                results.push(parsed);
            }
        }
    }
    Ok(results)
}

fn response(slot: usize, status: u16, bytes: usize) -> Parsed {
    Parsed::Response(ResponseEnd { stream: slot, status, bytes: bytes as u64, reusable: true, grpc: None })
}

#[test]
fn request_is_one_record_with_its_fields_and_body() {
    let fields = [("authorization", "secret"), ("connection", "close"), ("x-shop", "7")];
    let request = Http3Request::new(&neutral(Method::POST, b"{}", &fields));
    let mut connection = begun(1, 0);
    let mut out = Vec::new();
    connection.begin(&request, [].as_slice().into(), &mut out);
    let expected = [
        headers(&[
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", "127.0.0.1:8443"),
            (":path", "/cart"),
        ]),
        data(b"{}"),
    ];
    let (taken, record) = RecordReader::default().next(&out);
    let Some(Record::Data(REQUEST, stream, true)) = record else { panic!("{record:?}") };
    assert_eq!(taken, out.len());
    assert!(stream.ends_with(&expected[1]), "{stream:?}");
    let text = String::from_utf8_lossy(stream);
    assert!(!text.contains("close"), "a field of the connection: {text}");
    assert!(!connection.can_send(), "there is no room for another");
}

#[test]
fn responses_are_told_however_they_arrive() {
    let body = [headers(&[(":status", "200"), ("content-length", "5")]), data(b"he"), data(b"llo")].concat();
    let early = headers(&[(":status", "103"), ("link", "</style.css>")]);
    let whole = [early, headers(&[(":status", "404")]), data(&[7; 300]), headers(&[("x-sum", "1")])].concat();
    let records = [
        settings(),
        sent(0, &body[..7]),
        sent(4, &whole),
        sent(0, &body[7..]),
        other(RecordKind::End, 0, 0),
        other(RecordKind::End, 4, 0),
    ]
    .concat();
    for step in [1, 2, 17, 18, 1000] {
        let mut connection = begun(2, 2);
        let results = feed(&mut connection, &records, step, &mut Vec::new());
        assert_eq!(results, Ok(vec![response(0, 200, body.len()), response(1, 404, whole.len())]), "{step}");
        assert_eq!(connection.end(), Ok(None));
    }
}

#[test]
fn failures_of_one_request_leave_the_others() {
    let head = headers(&[(":status", "200"), ("content-length", "5")]);
    let end = other(RecordKind::End, REQUEST, 0);
    for (records, kind, named) in [
        (end.clone(), ErrorKind::MalformedResponse, "no response"),
        ([sent(0, &headers(&[("x", "y")])), end.clone()].concat(), ErrorKind::MalformedResponse, "no status"),
        (
            [sent(0, &[&head[..], &data(b"four")].concat()), end].concat(),
            ErrorKind::MalformedResponse,
            "too short",
        ),
        (sent(0, &[&head[..], &data(b"longer")].concat()), ErrorKind::MalformedResponse, "too long"),
        (other(RecordKind::Reset, 0, 0x10c), ErrorKind::StreamReset, "reset"),
        (other(RecordKind::Reset, 0, 0x10b), ErrorKind::StreamRefused, "refused"),
    ] {
        let mut connection = begun(3, 2);
        assert_eq!(all(&mut connection, &records), Ok(vec![Parsed::Failed(0, kind)]), "{named}");
        let rest = [sent(0, &data(b"late")), sent(4, &headers(&[(":status", "204")]))].concat();
        let rest = [rest, other(RecordKind::End, 4, 0)].concat();
        assert_eq!(all(&mut connection, &rest), Ok(vec![response(1, 204, 6)]), "{named}");
    }
}

#[test]
fn cancelled_request_is_given_up_both_ways() {
    let mut connection = begun(1, 1);
    let mut out = Vec::new();
    connection.cancel(0, &mut out);
    let code = ErrorCode::RequestCancelled as u64;
    let (reset, stop) = (other(RecordKind::Reset, 0, code), other(RecordKind::Stop, 0, code));
    assert_eq!(out, [reset, stop].concat());
    assert_eq!(connection.end(), Ok(None));
}

#[test]
fn goaway_fails_what_was_not_seen() {
    let mut stream = Vec::new();
    control::begin(65_536, &mut stream);
    control::push_goaway(4, &mut stream);
    let mut connection = begun(3, 2);
    assert_eq!(
        all(&mut connection, &sent(SERVER_CONTROL, &stream)),
        Ok(vec![Parsed::Failed(1, ErrorKind::GoneAway), Parsed::Closing])
    );
    assert!(!connection.can_send());
    let last = [sent(0, &headers(&[(":status", "204")])), other(RecordKind::End, 0, 0)].concat();
    let Ok(results) = all(&mut connection, &last) else { panic!("the first request was seen") };
    assert!(matches!(results[..], [Parsed::Response(ResponseEnd { stream: 0, reusable: false, .. })]));
}

#[test]
fn limit_of_the_peer_is_kept() {
    let mut connection = Http3Connection::new(10);
    connection.open(&mut Vec::new());
    let limited = [other(RecordKind::Room, 0, 0), other(RecordKind::Limited, 0, 1)].concat();
    assert_eq!(all(&mut connection, &limited), Ok(vec![Parsed::Room]));
    assert_eq!(connection.peer_limit(), Some(1));
    connection.begin(
        &Http3Request::new(&neutral(Method::GET, b"", &[])),
        [].as_slice().into(),
        &mut Vec::new(),
    );
    assert!(!connection.can_send());
    assert_eq!(all(&mut connection, &other(RecordKind::Room, 4, 0)), Ok(vec![Parsed::Room]));
}

#[test]
fn events_are_counted_per_read() {
    let head = headers(&[(":status", "200"), ("content-type", "text/event-stream")]);
    let stream = [head, data(b"data: 1\n\ndata: 2\n\n"), data(b"data: 3\n\n")].concat();
    let mut connection = begun(1, 1);
    assert_eq!(
        all(&mut connection, &[sent(0, &stream), other(RecordKind::End, 0, 0)].concat()),
        Ok(vec![Parsed::EventStream(0), Parsed::Messages(0, 3), response(0, 200, stream.len())])
    );
}

#[test]
fn violations_end_the_connection_by_name() {
    let head = headers(&[(":status", "200")]);
    let bytes = |parts: &[&[u8]]| sent(REQUEST, &parts.concat());
    for (records, code, kind, named) in [
        (
            bytes(&[&data(b"x")]),
            ErrorCode::FrameUnexpected,
            ErrorKind::Http3Protocol,
            "content before the head",
        ),
        (bytes(&[&head, &head, &data(b"x")]), ErrorCode::Message, ErrorKind::MalformedResponse, "two heads"),
        (bytes(&[&[4, 0]]), ErrorCode::FrameUnexpected, ErrorKind::Http3Protocol, "settings on a request"),
        (bytes(&[&[5, 1, 0]]), ErrorCode::Id, ErrorKind::Http3Protocol, "a promised push"),
        (
            bytes(&[&[1, 3, 0, 0, 0x80]]),
            ErrorCode::Decompression,
            ErrorKind::Http3Compression,
            "a dynamic table",
        ),
        (bytes(&[&[1, 0]]), ErrorCode::Decompression, ErrorKind::Http3Compression, "no field section"),
        (bytes(&[&[1, 0x80, 4, 0, 1]]), ErrorCode::ExcessiveLoad, ErrorKind::HeadTooLarge, "a huge head"),
        (
            [bytes(&[&head[..3]]), other(RecordKind::End, 0, 0)].concat(),
            ErrorCode::Frame,
            ErrorKind::Http3Frame,
            "a frame that is cut short",
        ),
        (sent(3, &[0, 7, 0]), ErrorCode::MissingSettings, ErrorKind::Http3Settings, "no settings"),
        (sent(3, &[2, 0x3f]), ErrorCode::EncoderStream, ErrorKind::Http3Compression, "a table"),
        (
            [settings(), other(RecordKind::End, 3, 0)].concat(),
            ErrorCode::ClosedCriticalStream,
            ErrorKind::Http3ControlClosed,
            "no control stream any longer",
        ),
        (
            bytes(&[&[0x21, 0].repeat(20_000)]),
            ErrorCode::ExcessiveLoad,
            ErrorKind::Http3Flood,
            "unknown frames without end",
        ),
        (
            bytes(&[&head, &[0, 0].repeat(20_000)]),
            ErrorCode::ExcessiveLoad,
            ErrorKind::Http3Flood,
            "empty content without end",
        ),
    ] {
        let (mut connection, mut out) = (begun(1, 1), Vec::new());
        let outcome = feed(&mut connection, &records, records.len(), &mut out);
        if code == ErrorCode::Message {
            assert_eq!(outcome, Ok(vec![Parsed::Failed(0, kind)]), "{named}");
            continue;
        }
        assert_eq!(outcome, Err(kind), "{named}");
        let (_, record) = RecordReader::default().next(&out);
        let close = RecordHead { kind: RecordKind::Close, stream: 0, number: code as u64 };
        assert_eq!(record, Some(Record::Other(close)), "{named}");
    }
}

#[test]
fn streams_of_unknown_kinds_are_stopped() {
    let (mut connection, mut out) = (begun(1, 1), Vec::new());
    assert_eq!(feed(&mut connection, &sent(7, &[0x21, 1, 2, 3]), 100, &mut out), Ok(vec![]));
    assert_eq!(out, other(RecordKind::Stop, 7, ErrorCode::StreamCreation as u64));
    assert_eq!(all(&mut connection, &other(RecordKind::Reset, 7, 0)), Ok(vec![]));
}

#[test]
fn placeholders_and_cookies_have_their_values() {
    let mut request = neutral(Method::POST, b"", &[]);
    request.body = Body::with_ranges(b"id={1..9}");
    request.sends_cookies = true;
    let (mut connection, mut out) = (begun(1, 0), Vec::new());
    let values = Values { numbers: &[5], cookies: b"cart=7", ..Values::default() };
    connection.begin(&Http3Request::new(&request), values, &mut out);
    let mut cookie = Vec::new();
    qpack::push_name(b"cookie", true, &mut cookie);
    http2::hpack::text::encode(b"cart=7", 7, 0, &mut cookie);
    assert!(out.ends_with(&[cookie, data(b"id=5")].concat()), "{out:?}");
}

proptest! {
    #[test]
    fn any_bytes_of_a_peer_end(parts: Vec<(u8, Vec<u8>)>, step in 1_usize..50) {
        let records: Vec<u8> = parts
            .iter()
            .flat_map(|(stream, bytes)| sent(u64::from(*stream % 16), bytes))
            .collect();
        let _ = feed(&mut begun(2, 2), &records, step, &mut Vec::new());
    }
}
