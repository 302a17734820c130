//! Protocol violations of peers, and unusual input that must be harmless.

use super::*;
use http2::hpack::FieldReader;

/// Collects every field.
#[derive(Default)]
pub(super) struct Names(pub(super) Vec<(String, String)>);

impl FieldReader for Names {
    fn wants(&mut self, _: &[u8]) -> bool {
        true
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push((text(name), text(value)));
    }
}

/// The error code with which a connection ended.
fn last_word(client: &mut Client) -> u32 {
    let said = client.said();
    let (kind, _, _, payload) = said.last().expect("a last word");
    assert_eq!(*kind, kind::GOAWAY);
    u32::from_be_bytes(payload[4..8].try_into().unwrap())
}

#[test]
fn protocol_violations_end_connection_with_matching_error_code() {
    use ErrorKind::{HeadTooLarge, Http2Compression, Http2FlowControl, Http2FrameSize, Http2Protocol};
    let too_long = frame(kind::HEADERS, END_HEADERS, 1, &[0; 16_385]);
    let endless = [
        frame(kind::HEADERS, 0, 1, STATUS_200),
        frame(kind::CONTINUATION, 0, 1, b"").repeat(MAX_HEAD_BYTES / 9 + 1),
    ]
    .concat();
    let large = [
        frame(kind::HEADERS, 0, 1, STATUS_200),
        frame(kind::CONTINUATION, 0, 1, &[0; 16_384]).repeat(MAX_HEAD_BYTES / 16_384 + 1),
    ]
    .concat();
    let cases: [(&str, Vec<u8>, ErrorKind, u32); 30] = [
        ("a frame that is too long", too_long, Http2FrameSize, 6),
        ("content of no stream", data(0, 0, b""), Http2Protocol, 1),
        ("content of a stream that nobody opened", data(9, 0, b""), Http2Protocol, 1),
        ("content of a stream of the peer's own", data(2, 0, b""), Http2Protocol, 1),
        ("a head of no stream", headers(0, 0, STATUS_200), Http2Protocol, 1),
        ("a head of a stream that nobody opened", headers(5, 0, STATUS_200), Http2Protocol, 1),
        ("padding without a length", frame(kind::DATA, flag::PADDED, 1, b""), Http2FrameSize, 6),
        ("more padding than content", frame(kind::DATA, flag::PADDED, 1, b"\x04abc"), Http2Protocol, 1),
        ("a padded head without a length", frame(kind::HEADERS, flag::PADDED, 1, b""), Http2FrameSize, 6),
        ("more padding than head", frame(kind::HEADERS, flag::PADDED, 1, b"\x03ab"), Http2Protocol, 1),
        ("half a priority", frame(kind::HEADERS, flag::PRIORITY, 1, b"abc"), Http2FrameSize, 6),
        ("a priority of no stream", frame(kind::PRIORITY, 0, 0, &[0; 5]), Http2Protocol, 1),
        ("a short priority", frame(kind::PRIORITY, 0, 1, &[0; 4]), Http2FrameSize, 6),
        ("a reset of a stream that nobody opened", reset(9, 0), Http2Protocol, 1),
        ("a short reset", frame(kind::RST_STREAM, 0, 1, b"abc"), Http2FrameSize, 6),
        ("settings of a stream", frame(kind::SETTINGS, 0, 1, b""), Http2Protocol, 1),
        ("half a setting", frame(kind::SETTINGS, 0, 0, b"abc"), Http2FrameSize, 6),
        ("an answer with settings", frame(kind::SETTINGS, flag::ACK, 0, &[0; 6]), Http2FrameSize, 6),
        ("a window beyond 31 bits", settings(&[(4, 1 << 31)]), Http2FlowControl, 3),
        ("frames shorter than may be", settings(&[(5, 16_383)]), Http2Protocol, 1),
        ("a pushed response", frame(kind::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]), Http2Protocol, 1),
        ("a short ping", frame(kind::PING, 0, 0, b"abc"), Http2FrameSize, 6),
        ("a short goodbye", frame(kind::GOAWAY, 0, 0, b"abc"), Http2FrameSize, 6),
        ("a short window update", frame(kind::WINDOW_UPDATE, 0, 0, b"abc"), Http2FrameSize, 6),
        ("no more room for the connection", window_update(0, 0), Http2Protocol, 1),
        ("a continuation of nothing", frame(kind::CONTINUATION, 0, 1, b""), Http2Protocol, 1),
        (
            "another frame within a head",
            [frame(kind::HEADERS, 0, 1, STATUS_200), frame(kind::PING, 0, 0, &[0; 8])].concat(),
            Http2Protocol,
            1,
        ),
        ("a head that cannot be read", headers(1, 0, &[0xff, 0xff]), Http2Compression, 9),
        ("a head without end", endless, HeadTooLarge, 11),
        ("a head that is too large", large, HeadTooLarge, 11),
    ];
    for (what, bytes, kind, code) in cases {
        for piece in [1, 16_384, bytes.len()] {
            let mut client = Client::greeted(2, &[]);
            client.get();
            let outcome = bytes.chunks(piece).try_for_each(|part| client.receive(part).map(drop));
            assert_eq!(outcome, Err(kind), "{what}, in pieces of {piece}");
            assert_eq!(last_word(&mut client), code, "{what}");
        }
    }
}

#[test]
fn frames_on_ended_stream_are_error_unless_it_was_cancelled() {
    let mut client = Client::greeted(1, &[]);
    client.get();
    client.receive(&headers(1, END_STREAM, STATUS_200)).unwrap();
    assert_eq!(client.receive(&data(1, 0, b"more")), Err(ErrorKind::Http2Protocol));
    assert_eq!(last_word(&mut client), ErrorCode::StreamClosed as u32);
}

#[test]
fn non_http2_peer_is_reported_as_soon_as_detected() {
    for (what, bytes, kind) in [
        ("HTTP/1.1", &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], ErrorKind::NotHttp2),
        ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n", ErrorKind::NotHttp2),
        ("TLS", b"\x15\x03\x01\x00\x02\x02\x46", ErrorKind::TlsResponse),
        ("a ping first", &frame(kind::PING, 0, 0, &[0; 8]), ErrorKind::NotHttp2),
        ("content first", &data(1, 0, b"x"), ErrorKind::NotHttp2),
        ("an answer first", &frame(kind::SETTINGS, flag::ACK, 0, b""), ErrorKind::NotHttp2),
    ] {
        for piece in [1, 3, bytes.len()] {
            let mut client = Client::new(1);
            client.said();
            let outcome = bytes.chunks(piece).try_for_each(|part| client.receive(part).map(drop));
            assert_eq!(outcome, Err(kind), "{what}, in pieces of {piece}");
        }
    }
    let mut client = Client::new(1);
    client.receive(b"HTTP").unwrap();
    assert_eq!(client.connection.end(), Err(ProtocolError(ErrorKind::NotHttp2)));
}

#[test]
fn ignorable_frames_are_ignored() {
    let mut client = Client::greeted(1, &[]);
    client.get();
    client.said();
    let bytes = [
        frame(kind::PRIORITY, 0, 1, &[0; 5]),
        frame(kind::PRIORITY, 0, 99, &[0; 5]),
        frame(0xfa, 0xff, 77, b"unknown to everybody"),
        frame(kind::PING, flag::ACK, 0, &[0; 8]),
        settings(&[(0x99, 7)]),
        headers(1, END_STREAM, STATUS_200),
    ]
    .concat();
    assert_eq!(client.receive(&bytes), Ok(vec![response(0, 200, 10)]));
    assert_eq!(client.said(), [(kind::SETTINGS, flag::ACK, 0, vec![])]);
}

#[test]
fn pings_are_acknowledged_up_to_flood_limit() {
    let mut client = Client::greeted(1, &[]);
    client.get();
    client.said();
    assert_eq!(client.receive(&frame(kind::PING, 0, 0, b"12345678")), Ok(vec![]));
    assert_eq!(client.said(), [(kind::PING, flag::ACK, 0, b"12345678".to_vec())]);
    for flood in [frame(kind::PING, 0, 0, &[0; 8]), settings(&[])] {
        let mut client = Client::greeted(1, &[]);
        client.get();
        let kept = client.out.len();
        assert_eq!(client.receive(&flood.repeat(20_000)), Err(ErrorKind::Http2Flood));
        assert!(client.out.len() - kept < 200_000, "{} bytes to be sent", client.out.len());
        // Traffic that is in proportion may continue forever: responses, a response without end, and a request without end.
        let mut client = Client::greeted(1, &[]);
        for round in 0..3_000 {
            client.get();
            client.receive(&flood.repeat(10)).unwrap();
            client.receive(&headers(2 * round + 1, END_STREAM, STATUS_200)).unwrap();
        }
        let mut client = Client::greeted(1, &[]);
        client.get();
        client.receive(&headers(1, 0, STATUS_200)).unwrap();
        for _ in 0..3_000 {
            client.receive(&flood.repeat(10)).unwrap();
            client.receive(&data(1, 0, b"x")).unwrap();
        }
        let mut client = Client::greeted(1, &[(4, 0)]);
        client.post(&[b'x'; 3_000]);
        for _ in 0..3_000 {
            client.receive(&flood.repeat(10)).unwrap();
            client.receive(&window_update(1, 1)).unwrap();
        }
    }
}

#[test]
fn content_between_floods_excuses_only_its_share() {
    let empty = data(1, 0, b"");
    let padding = frame(kind::DATA, flag::PADDED, 1, b"\x00");
    for content in [data(1, 0, b"x"), empty, padding] {
        for flood in [frame(kind::PING, 0, 0, &[0; 8]), settings(&[])] {
            let mut client = Client::greeted(1, &[]);
            client.get();
            client.receive(&headers(1, 0, STATUS_200)).unwrap();
            let round = [flood.repeat(9_000), content.clone()].concat();
            assert_eq!(client.receive(&round), Ok(vec![]));
            assert_eq!(client.receive(&round), Err(ErrorKind::Http2Flood));
        }
    }
}

#[test]
fn floods_without_replies_take_no_memory() {
    let mut client = Client::greeted(1, &[]);
    client.get();
    client.said();
    client.receive(&headers(1, 0, STATUS_200)).unwrap();
    for flood in [data(1, 0, b""), frame(kind::PRIORITY, 0, 7, &[0; 5]), frame(0xee, 0, 0, b"?"), reset(1, 0)]
    {
        client.receive(&flood.repeat(10_000)).unwrap();
    }
    assert!(client.out.is_empty());
    assert!(!client.connection.input.is_within_frame());
    assert!(client.connection.pending_results.is_empty());
}

#[test]
fn fewest_streams_that_a_peer_allowed_are_remembered() {
    const MAX_CONCURRENT_STREAMS: u16 = 3;
    let mut client = Client::greeted(32, &[(MAX_CONCURRENT_STREAMS, 100)]);
    assert_eq!(client.connection.peer_limit(), None);
    // It allows fewer for a while, and all again on the next connection.
    for streams in [2, 100] {
        client.receive(&settings(&[(MAX_CONCURRENT_STREAMS, streams)])).unwrap();
    }
    assert_eq!((client.connection.peer_limit(), client.connection.can_send()), (Some(2), true));
    client.connection.open(&mut client.out);
    assert_eq!(client.connection.peer_limit(), Some(2));
}
