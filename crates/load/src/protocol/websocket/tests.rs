use super::*;
use crate::target::{RequestTemplate, resolve};

const ACCEPTED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// The bytes of a server that has agreed on a WebSocket, for [`check_connection`] and [`reports`].
fn after_handshake(frames: &[&[u8]]) -> Vec<u8> {
    [ACCEPTED, &frames.concat()].concat()
}

/// What is reported after the handshake, however it arrives.
fn reported(replies: Replies, frames: &[&[u8]]) -> (Vec<Parsed>, Result<(), ErrorKind>) {
    let bytes = after_handshake(frames);
    let (mut all, ended) = reports(replies, &bytes, bytes.len());
    for piece in 1..bytes.len() {
        assert_eq!(reports(replies, &bytes, piece), (all.clone(), ended), "in pieces of {piece}");
    }
    assert_eq!(all.remove(0), Parsed::Room);
    (all, ended)
}

fn response(stream: usize, bytes: u64, reusable: bool) -> Parsed {
    Parsed::Response(ResponseEnd { stream, status: 0, bytes, reusable, grpc: None })
}

#[test]
fn answers_are_matched_in_order_without_control_frames() {
    let frames: [&[u8]; 5] =
        [b"\x81\x02hi", b"\x89\x01x\x8a\x00", b"\x01\x01a", b"\x89\x00\x80\x01b", b"\x82\x00"];
    let (all, _) = reported(Replies::InOrder(3), &frames);
    assert_eq!(all, [response(0, 4, true), response(1, 6, true), response(2, 2, true)]);
    let (all, _) = reported(Replies::InOrder(1), &frames);
    assert_eq!(all, [response(0, 4, true), response(0, 6, true), response(0, 2, true)]);
}

#[test]
fn stream_of_messages_ends_after_its_number_or_with_the_connection() {
    let two = Replies::Pushed(NonZeroU64::new(2));
    let frames: [&[u8]; 4] = [b"\x89\x00\x81\x01a", b"\x81\x00", b"\x02\x01b\x80\x00", b"\x81\x01c"];
    let one_and_a_half = [
        Parsed::EventStream(0),
        Parsed::Messages(0, 2),
        response(0, 8, true),
        Parsed::EventStream(0),
        Parsed::Messages(0, 1),
    ];
    assert_eq!(reported(two, &frames), (one_and_a_half.to_vec(), Err(ErrorKind::Closed)));
    let until_close = Replies::Pushed(None);
    let closed = [&frames[..], &[b"\x88\x02\x03\xe8"]].concat();
    let whole = [Parsed::EventStream(0), Parsed::Messages(0, 3), response(0, 11, false)];
    assert_eq!(reported(until_close, &closed), (whole.to_vec(), Ok(())));
    let empty = [Parsed::EventStream(0), response(0, 0, false)];
    assert_eq!(reported(until_close, &[b"\x88\x00"]), (empty.to_vec(), Ok(())));
    let failed = [&frames[..], &[b"\x88\x02\x03\xf3"]].concat();
    assert_eq!(reported(until_close, &failed), (whole[..2].to_vec(), Err(ErrorKind::CloseInternal)));
}

#[test]
fn close_of_a_connection_is_an_error_by_its_code_unless_nothing_is_missing() {
    let mut codec = WebSocket::new(Replies::InOrder(1));
    for (close, unasked, asked) in [
        (&b"\x88\x02\x03\xe8"[..], Ok(Parsed::Closing), ErrorKind::CloseNormal),
        (b"\x88\x00", Ok(Parsed::Closing), ErrorKind::CloseNoCode),
        (b"\x88\x02\x03\xe9", Ok(Parsed::Closing), ErrorKind::CloseGoingAway),
        (b"\x88\x04\x03\xf0no", Err(ProtocolError(ErrorKind::ClosePolicy)), ErrorKind::ClosePolicy),
        (b"\x88\x02\x0f\xa0", Err(ProtocolError(ErrorKind::CloseApplication)), ErrorKind::CloseApplication),
    ] {
        for is_asked in [false, true] {
            let (request, mut out) = (WebSocketRequest::for_check(), Vec::new());
            codec.open_with("dGhlIHNhbXBsZSBub25jZQ==".to_owned(), &request, &mut out);
            assert_eq!(codec.receive(ACCEPTED, &mut out), Ok((ACCEPTED.len(), Parsed::Room)));
            if is_asked {
                codec.begin(&request, Values::default(), &mut out);
            }
            out.clear();
            let received = codec.receive(close, &mut out).map(|(_, parsed)| parsed);
            assert_eq!(received, if is_asked { Err(ProtocolError(asked)) } else { unasked }, "{close:x?}");
            assert_eq!(out[..2], [0x88, 0x80 | close[1].min(2)], "the close is answered");
            assert!(!codec.can_send());
            out.clear();
            codec.close(&mut out);
            assert!(out.is_empty(), "once");
        }
    }
}

#[test]
fn pings_are_answered_with_their_content() {
    let mut codec = WebSocket::new(Replies::InOrder(1));
    let mut out = Vec::new();
    assert_eq!(codec.receive(b"\x89\x04beat", &mut out), Ok((6, Parsed::Incomplete)));
    let mut reader = FrameReader::new(Sender::Client, 1);
    assert_eq!(reader.read(&out, None), Ok((out.len(), Received::Pong)));
    assert_eq!(reader.control(), b"beat");
    assert_eq!(
        codec.receive(b"\x81\x01x", &mut out),
        Err(ProtocolError(ErrorKind::SurplusBytes)),
        "no message was asked for"
    );
}

#[test]
fn connection_is_opened_with_the_path_and_headers_of_its_url() {
    let template = RequestTemplate {
        headers: vec![crate::target::Header::new("Origin", "https://shop.example").expect("a header")],
        body: b"\xff\x00".as_slice().into(),
        ..RequestTemplate::default()
    };
    let targets = resolve(&["ws://127.0.0.1:81/chat?room=1".to_owned()], &template).expect("a URL");
    let request = WebSocketRequest::new(&targets.servers[0].requests[0]);
    let (mut codec, mut out) = (WebSocket::new(Replies::InOrder(1)), Vec::new());
    codec.open(&request, &mut out);
    assert!(!codec.can_send());
    let head = String::from_utf8(out).expect("text");
    assert!(head.starts_with("GET /chat?room=1 HTTP/1.1\r\nHost: 127.0.0.1:81\r\n"), "{head}");
    assert!(head.ends_with("\r\n\r\n") && !head.contains("Content-Length"), "{head}");
    assert!(head.contains("\r\nOrigin: https://shop.example\r\n"), "{head}");
    let parsed = ::http1::parse_request(head.as_bytes(), |request, _| {
        ::http1::websocket::requested_key(request).expect("well-formed").map(<[u8]>::len)
    });
    assert_eq!(parsed, Ok(Some((head.len(), Some(24)))));
    let mut out = Vec::new();
    codec.begin(&request, Values::default(), &mut out);
    let mut content = Vec::new();
    let message = Received::Message { opcode: Opcode::Binary, content_bytes: 2, frame_bytes: 8 };
    let read = FrameReader::new(Sender::Client, 9).read(&out, Some(&mut content));
    assert_eq!((read, &content[..]), (Ok((8, message)), &b"\xff\x00"[..]));
}

#[test]
fn inputs_of_every_mode_pass_the_check() {
    let inputs: [&[&[u8]]; 4] = [
        &[b"\x81\x01a\x81\x01b\x81\x01c\x81\x01d"],
        &[b"\x81\x01a\x88\x02\x03\xe8"],
        &[b"\x89\x00\x01\x01a\x8a\x00\x80\x01b\x88\x00\x81\x01x"],
        &[b"\x81\x01a\xc1\x00"],
    ];
    for frames in inputs {
        for first in 0..=255 {
            check_connection(&[&[first], &after_handshake(frames)[..]].concat());
        }
    }
}
