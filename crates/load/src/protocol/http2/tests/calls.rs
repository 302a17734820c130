//! gRPC calls: their messages, and the requirements for their responses.

use super::*;
use crate::protocol::grpc::{GrpcCall, GrpcEnd};
use std::num::NonZeroU64;

/// A message of this many bytes, with its prefix.
fn message(bytes: usize) -> Vec<u8> {
    [&[0][..], &(bytes as u32).to_be_bytes(), &vec![b'x'; bytes]].concat()
}

/// Encodes fields as literals that enter no table.
fn fields(pairs: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
    pairs.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

fn head() -> Vec<u8> {
    [STATUS_200, &fields(&[("content-type", "application/grpc")])].concat()
}

fn trailers(stream: u32, status: &str) -> Vec<u8> {
    headers(stream, END_STREAM, &fields(&[("grpc-status", status), ("grpc-message", "said")]))
}

fn call(call: GrpcCall) -> Http2Request {
    let mut request = neutral(Method::POST, b"");
    request.call = Some(call);
    Http2Request::new(&request, &common())
}

fn unary() -> Http2Request {
    call(GrpcCall::unary(&[vec![1; 10], vec![2; 20]], false).unwrap())
}

fn stream(count: u64, server_streams: bool) -> Http2Request {
    call(GrpcCall::stream(&[vec![1; 10]], NonZeroU64::new(count).unwrap(), server_streams).unwrap())
}

impl Client {
    fn call(&mut self, request: &Http2Request) -> usize {
        self.connection.begin(request, Values::default(), &mut self.out)
    }
}

fn ended(stream: usize, status: u8, messages: u64) -> impl Fn(&Parsed) -> bool {
    move |parsed| match parsed {
        Parsed::Response(end) => end.stream == stream && end.grpc == Some(GrpcEnd { status, messages }),
        _ => false,
    }
}

#[test]
fn unary_calls_rotate_messages_and_end_with_trailers() {
    let mut client = Client::greeted(2, &[]);
    let (first, second) = (client.call(&unary()), client.call(&unary()));
    assert_eq!(client.sent_content(), [(1, 15, true), (3, 25, true)]);
    let answer = [headers(3, 0, &head()), data(3, 0, &message(7)), trailers(3, "0")].concat();
    assert!(matches!(&client.receive(&answer).unwrap()[..], [end] if ended(second, 0, 1)(end)));
    // An error is a trailers-only response.
    let only = [head(), fields(&[("grpc-status", "8")])].concat();
    let events = client.receive(&headers(1, END_STREAM, &only)).unwrap();
    assert!(matches!(&events[..], [end] if ended(first, 8, 0)(end)), "{events:?}");
    assert_eq!((client.connection.messages_sent(first), client.connection.messages_sent(second)), (1, 1));
}

#[test]
fn call_sends_no_content_length() {
    let mut client = Client::greeted(1, &[]);
    client.call(&unary());
    let frames = client.said();
    let length = b"\x0f\x0d";
    let block = &frames.iter().find(|frame| frame.0 == kind::HEADERS).unwrap().3;
    assert!(!block.windows(2).any(|pair| pair == length), "{block:02x?}");
}

#[test]
fn client_stream_is_sent_as_windows_allow() {
    let mut client = Client::greeted(1, &[(4, 40)]);
    let slot = client.call(&stream(4, false));
    assert_eq!(client.sent_content(), [(1, 40, false)]);
    assert_eq!(client.connection.messages_sent(slot), 3);
    client.receive(&window_update(1, 1000)).unwrap();
    assert_eq!(client.sent_content(), [(1, 20, true)]);
    let answer = [headers(1, 0, &head()), data(1, 0, &message(0)), trailers(1, "0")].concat();
    assert!(matches!(&client.receive(&answer).unwrap()[..], [end] if ended(slot, 0, 1)(end)));
    assert_eq!(client.connection.messages_sent(slot), 4);
}

#[test]
fn dialogue_waits_for_each_response_in_any_pieces() {
    let request = call(GrpcCall::dialogue(&[vec![1; 10]], NonZeroU64::new(3).unwrap()).unwrap());
    let mut client = Client::greeted(1, &[]);
    let slot = client.call(&request);
    assert_eq!(client.sent_content(), [(1, 15, false)]);
    client.receive(&headers(1, 0, &head())).unwrap();
    assert_eq!(client.sent_content(), []);
    let answer = message(7);
    assert_eq!(client.receive(&data(1, 0, &answer[..6])).unwrap(), []);
    assert_eq!(client.sent_content(), []);
    // The end of this message together with the whole next one: both count as responses.
    let more = [&answer[6..], &answer].concat();
    assert_eq!(client.receive(&data(1, 0, &more)).unwrap(), [Parsed::Messages(slot, 2)]);
    assert_eq!(client.sent_content(), [(1, 30, true)]);
    let events = client.receive(&[data(1, 0, &answer), trailers(1, "0")].concat()).unwrap();
    assert!(matches!(&events[..], [Parsed::Messages(0, 1), end] if ended(slot, 0, 0)(end)), "{events:?}");
}

#[test]
fn dialogue_without_window_continues_when_window_opens() {
    let request = call(GrpcCall::dialogue(&[vec![1; 10]], NonZeroU64::new(2).unwrap()).unwrap());
    let mut client = Client::greeted(1, &[(4, 20)]);
    let slot = client.call(&request);
    assert_eq!(client.sent_content(), [(1, 15, false)]);
    client.receive(&[headers(1, 0, &head()), data(1, 0, &message(1))].concat()).unwrap();
    assert_eq!(client.sent_content(), [(1, 5, false)]);
    client.receive(&window_update(1, 10)).unwrap();
    assert_eq!(client.sent_content(), [(1, 10, true)]);
    let events = client.receive(&[data(1, 0, &message(1)), trailers(1, "0")].concat()).unwrap();
    assert!(matches!(&events[..], [Parsed::Messages(0, 1), end] if ended(slot, 0, 0)(end)), "{events:?}");
}

#[test]
fn call_ended_early_by_peer_is_reset() {
    let request = call(GrpcCall::dialogue(&[vec![1; 10]], NonZeroU64::new(9).unwrap()).unwrap());
    let mut client = Client::greeted(1, &[]);
    let slot = client.call(&request);
    client.said();
    let events = client.receive(&[headers(1, 0, &head()), trailers(1, "0")].concat()).unwrap();
    assert!(matches!(&events[..], [end] if ended(slot, 0, 0)(end)), "{events:?}");
    assert!(matches!(&client.said()[..], [(kind::RST_STREAM, 0, 1, _)]));
    assert_eq!(client.connection.messages_sent(slot), 1);
    assert!(client.connection.can_send());
}

#[test]
fn non_grpc_response_fails_only_its_call() {
    for (answer, kind) in [
        (headers(1, END_STREAM, &fields(&[(":status", "503")])), ErrorKind::GrpcHttpStatus),
        (headers(1, 0, STATUS_200), ErrorKind::GrpcContentType),
        ([headers(1, 0, &head()), data(1, END_STREAM, &message(3))].concat(), ErrorKind::GrpcStatusMissing),
        (
            [headers(1, 0, &head()), data(1, 0, &message(3)[..7]), trailers(1, "0")].concat(),
            ErrorKind::GrpcMessageCut,
        ),
        ([headers(1, 0, &head()), data(1, 0, &[1, 0, 0, 0, 0])].concat(), ErrorKind::GrpcCompressed),
        ([headers(1, 0, &head()), trailers(1, "0")].concat(), ErrorKind::GrpcMessageCount),
        ([headers(1, 0, &head()), data(1, 0, &message(3)), reset(1, 2)].concat(), ErrorKind::StreamReset),
    ] {
        let mut client = Client::greeted(1, &[]);
        let slot = client.call(&unary());
        assert_eq!(client.receive(&answer).unwrap(), [Parsed::Failed(slot, kind)]);
        assert!(client.connection.can_send());
    }
}

/// Results reported for a response with these messages that arrives in pieces of these lengths: number of
/// messages and of ends, and the last end.
fn told(answer: &[u8], pieces: &[usize]) -> (u32, usize, Option<GrpcEnd>) {
    let mut client = Client::greeted(1, &[]);
    client.call(&stream(1, true));
    let (mut rest, mut pieces) = (answer, pieces.iter().cycle());
    let (mut messages, mut ends, mut end) = (0, 0, None);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(*pieces.next().unwrap()));
        for parsed in client.receive(piece).unwrap() {
            match parsed {
                Parsed::Messages(0, count) => messages += count,
                Parsed::Response(response) => (ends, end) = (ends + 1, response.grpc),
                other => panic!("{other:?}"),
            }
        }
        rest = after;
    }
    (messages, ends, end)
}

proptest! {
    #[test]
    fn message_count_does_not_depend_on_splits(
        lengths in prop::collection::vec(0_usize..300, 0..20),
        frames in prop::collection::vec(1_usize..200, 1..5),
        pieces in prop::collection::vec(1_usize..100, 1..5),
        status in 0_u8..17,
    ) {
        let content = lengths.iter().flat_map(|bytes| message(*bytes)).collect::<Vec<_>>();
        let mut answer = headers(1, 0, &head());
        let (mut rest, mut lengths_of_frames) = (&content[..], frames.iter().cycle());
        while !rest.is_empty() {
            let (frame, after) = rest.split_at(rest.len().min(*lengths_of_frames.next().unwrap()));
            answer.extend(data(1, 0, frame));
            rest = after;
        }
        answer.extend(trailers(1, &status.to_string()));
        let expected = (lengths.len() as u32, 1, Some(GrpcEnd { status, messages: 0 }));
        prop_assert_eq!(told(&answer, &pieces), expected);
    }

    #[test]
    fn no_bytes_end_call_twice(content in prop::collection::vec(any::<u8>(), 0..300), ends in any::<bool>()) {
        let mut client = Client::greeted(1, &[]);
        let slot = client.call(&stream(3, true));
        let answer = [headers(1, 0, &head()), data(1, if ends { END_STREAM } else { 0 }, &content)].concat();
        let events = client.receive(&answer).unwrap();
        let failed = events.iter().filter(|parsed| matches!(parsed, Parsed::Failed(failed, _) if *failed == slot));
        // Without trailers there is no status.
        prop_assert!(failed.count() == 1 || !ends);
        prop_assert!(!events.iter().any(|parsed| matches!(parsed, Parsed::Response(_))));
    }
}
