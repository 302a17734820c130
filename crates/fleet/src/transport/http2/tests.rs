//! Hand-written server side, so that it can violate the protocol.

use super::*;

const HEAD: RequestHead<'_> =
    RequestHead { scheme: "http", authority: "istiod", path: "/a/b", token: Some("t"), cluster_id: "" };

fn opened() -> Http2 {
    let mut http2 = Http2::new();
    http2.open(&HEAD);
    http2.take_output();
    http2
}

fn wire(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::push(kind, flags, stream, payload, &mut out);
    out
}

fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    fields
        .iter()
        .for_each(|(name, value)| hpack::encode_literal(name.as_bytes(), value.as_bytes(), &mut block));
    block
}

fn response() -> Vec<u8> {
    wire(kind::HEADERS, flag::END_HEADERS, STREAM, &head(&[(":status", "200")]))
}

/// Result of feeding bytes in chunks of `step`: body, events as text, and the ending.
fn outcome(http2: &mut Http2, bytes: &[u8], step: usize) -> (Vec<u8>, String, Option<Ending>) {
    let (mut body, mut events) = (Vec::new(), String::new());
    for part in bytes.chunks(step) {
        let received = http2.receive(part, &mut |event| {
            match event {
                Event::Data(bytes) => body.extend_from_slice(bytes),
                other => events.push_str(&format!("{other:?} ")),
            }
            Ok(())
        });
        if let Err(ending) = received {
            return (body, events, Some(ending));
        }
    }
    (body, events, None)
}

#[test]
fn request_names_the_build() {
    let mut http2 = Http2::new();
    http2.open(&HEAD);
    let sent = http2.take_output();
    let agent = Build::this().user_agent();
    assert!(agent.starts_with("meshmeter/0."), "{agent}");
    assert!(sent.windows(agent.len()).any(|window| window == agent.as_bytes()), "{sent:?}");
}

#[test]
fn response_does_not_depend_on_split() {
    let trailers = head(&[("grpc-status", "7"), ("grpc-message", "no")]);
    let (block, rest) = trailers.split_at(9);
    let mut padded = vec![3];
    padded.extend_from_slice(b"body\0\0\0");
    let bytes = [
        wire(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 1, 0]),
        response(),
        wire(kind::DATA, 0, STREAM, b"first "),
        wire(kind::DATA, 0, STREAM, b""),
        wire(kind::PING, 0, 0, b"12345678"),
        wire(0xbb, 0, 0, b"an extension"),
        wire(kind::DATA, flag::PADDED, STREAM, &padded),
        wire(kind::HEADERS, flag::END_STREAM, STREAM, block),
        wire(kind::CONTINUATION, flag::END_HEADERS, STREAM, rest),
    ]
    .concat();
    for step in 1..40 {
        let mut http2 = opened();
        let (body, events, ending) = outcome(&mut http2, &bytes, step);
        assert_eq!((body.as_slice(), events.as_str()), (&b"first body"[..], "Ready "), "step {step}");
        assert_eq!(ending, Some(Ending::for_status(7, "no")));
        let expected = [wire(kind::SETTINGS, flag::ACK, 0, b""), wire(kind::PING, flag::ACK, 0, b"12345678")];
        assert_eq!(http2.take_output(), expected.concat());
    }
}

#[test]
fn requests_wait_for_server_window() {
    let mut http2 = opened();
    http2.send(&vec![1; 100_000]);
    let sent = http2.take_output();
    assert_eq!(sent.len(), 65_535 + 4 * 9, "as much as the window holds, in frames of at most 16 KiB");
    let more = |stream| wire(kind::WINDOW_UPDATE, 0, stream, &100_000_u32.to_be_bytes());
    assert_eq!(outcome(&mut http2, &more(0), 99).2, None);
    assert!(!http2.has_output(), "the stream's own window is used up");
    http2.finish();
    outcome(&mut http2, &more(STREAM), 99);
    let rest = http2.take_output();
    assert_eq!(rest.len(), 100_000 - 65_535 + 3 * 9);
    assert_eq!(rest[2 * (16_384 + 9) + 4], flag::END_STREAM);
}

#[test]
fn received_bytes_are_returned_to_window() {
    let mut http2 = opened();
    outcome(&mut http2, &response(), 99);
    let data = wire(kind::DATA, 0, STREAM, &[0; 16_384]);
    for _ in 0..WINDOW_BYTES / 4 / 16_384 {
        assert!(!http2.has_output());
        outcome(&mut http2, &data, 5000);
    }
    let increment = (WINDOW_BYTES / 4).to_be_bytes();
    let expected = [0, STREAM].map(|stream| wire(kind::WINDOW_UPDATE, 0, stream, &increment)).concat();
    assert_eq!(http2.take_output(), expected);
}

#[test]
fn goaway_explains_end_of_connection() {
    let mut http2 = opened();
    let goaway = [&0x7fff_ffff_u32.to_be_bytes()[..], &0_u32.to_be_bytes(), b"max_age"].concat();
    assert_eq!(outcome(&mut http2, &wire(kind::GOAWAY, 0, 0, &goaway), 99).2, None);
    let ending = http2.explain(Ending::new(EndingKind::Lost, "closed"));
    assert_eq!(ending, Ending::new(EndingKind::GoAway, "GOAWAY with code 0 max_age"));
    let refused = wire(kind::GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11]);
    assert_eq!(outcome(&mut opened(), &refused, 99).2.unwrap().kind, EndingKind::GoAway);
}

#[test]
fn endings_and_violations_have_their_kinds() {
    let cases = [
        (wire(kind::RST_STREAM, 0, STREAM, &[0, 0, 0, 2]), EndingKind::StreamReset),
        (wire(kind::DATA, 0, STREAM, b"early"), EndingKind::Http2Violation),
        (wire(kind::DATA, 0, 3, b"elsewhere"), EndingKind::Http2Violation),
        ([response(), wire(kind::DATA, flag::PADDED, STREAM, b"")].concat(), EndingKind::Http2Violation),
        (
            [response(), wire(kind::DATA, flag::PADDED, STREAM, b"\x03ab")].concat(),
            EndingKind::Http2Violation,
        ),
        (wire(kind::CONTINUATION, 0, STREAM, b""), EndingKind::Http2Violation),
        (
            [wire(kind::HEADERS, 0, STREAM, b""), wire(kind::CONTINUATION, 0, 3, b"")].concat(),
            EndingKind::Http2Violation,
        ),
        (wire(kind::GOAWAY, 0, 0, b"short"), EndingKind::Http2Violation),
        (wire(kind::SETTINGS, 0, 0, b"short"), EndingKind::Http2Violation),
        (vec![0xff; 9], EndingKind::Http2Violation),
        (
            wire(kind::HEADERS, flag::END_HEADERS, STREAM, &head(&[(":status", "503")])),
            EndingKind::HttpStatus,
        ),
        (
            wire(kind::HEADERS, 5, STREAM, &head(&[(":status", "200"), ("grpc-status", "0")])),
            EndingKind::StreamEnded,
        ),
        (wire(kind::HEADERS, 5, STREAM, &head(&[(":status", "200")])), EndingKind::GrpcViolation),
        // References to the dynamic table, whose size is zero; a truncated name.
        (wire(kind::HEADERS, 5, STREAM, &[0x88, 0xbe]), EndingKind::Http2Violation),
        (wire(kind::HEADERS, 5, STREAM, &[0x7e, 1, b'a']), EndingKind::Http2Violation),
        (wire(kind::HEADERS, 5, STREAM, &[0, 5, b'a']), EndingKind::Http2Violation),
    ];
    for (bytes, kind) in cases {
        let (_, _, ending) = outcome(&mut opened(), &bytes, 99);
        assert_eq!(ending.map(|ending| ending.kind), Some(kind), "{bytes:x?}");
    }
}

#[test]
fn floods_end_connection_unless_traffic_accounts_for_them() {
    let settings = wire(kind::SETTINGS, 0, 0, b"");
    let ping = wire(kind::PING, 0, 0, b"12345678");
    let data = wire(kind::DATA, 0, STREAM, b"x");
    for frames in [ping, settings] {
        let mut http2 = opened();
        let (_, _, ending) = outcome(&mut http2, &frames.repeat(20_000), 4096);
        assert_eq!(ending.unwrap().kind, EndingKind::Http2Flood);
        assert!(http2.output_bytes() < 200_000, "{}", http2.output_bytes());
        let some = [frames.repeat(10), data.clone()].concat();
        let (body, _, ending) = outcome(&mut opened(), &[response(), some.repeat(3_000)].concat(), 4096);
        assert_eq!((body.len(), ending), (3_000, None));
        let most = [frames.repeat(9_000), data.clone()].concat();
        let (body, _, ending) = outcome(&mut opened(), &[response(), most.repeat(2)].concat(), 4096);
        assert_eq!((body.as_slice(), ending.unwrap().kind), (&b"x"[..], EndingKind::Http2Flood));
    }
}

#[test]
fn header_blocks_end_at_limit_even_if_frames_are_empty() {
    let begin = wire(kind::HEADERS, 0, STREAM, &head(&[(":status", "200")]));
    let empty = wire(kind::CONTINUATION, 0, STREAM, b"");
    for (frames, is_accepted) in [(1000, true), (10_000, false)] {
        let (_, _, ending) = outcome(&mut opened(), &[begin.clone(), empty.repeat(frames)].concat(), 4096);
        assert_eq!(ending.is_none(), is_accepted, "{ending:?}");
    }
}
