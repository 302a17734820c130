use super::settings::{CONNECTION_WINDOW_BYTES, MAX_HEAD_BYTES, STREAM_WINDOW_BYTES};
use super::*;
use crate::error::ErrorKind;
use crate::target::{Body, Header, Request, RequestTemplate, Text, resolve};
use http::Method;
use http2::ErrorCode;
use http2::frame::{self, PREFACE, flag, kind};
use proptest::prelude::*;

mod bodies;
mod calls;
mod events;
mod rules;
mod splits;

/// `:status: 200` from the static table.
const STATUS_200: &[u8] = &[0x88];
const END_HEADERS: u8 = flag::END_HEADERS;
const END_STREAM: u8 = flag::END_STREAM;

/// A frame of the server.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::push(kind, flags, stream, payload, &mut out);
    out
}

fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, END_HEADERS | flags, stream, block)
}

fn data(stream: u32, flags: u8, content: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, stream, content)
}

/// A SETTINGS frame with these settings.
fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = settings
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(kind::SETTINGS, 0, 0, &payload)
}

fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

fn neutral(method: Method, body: &[u8]) -> Request {
    let template = RequestTemplate { method, body: body.into(), ..RequestTemplate::default() };
    resolve(&["http://127.0.0.1:8080/cart".to_owned()], &template).expect("a good URL").servers[0].requests[0]
        .clone()
}

fn common() -> CommonFields {
    CommonFields::from_requests([Method::GET, Method::HEAD].map(|method| neutral(method, b"")).iter())
}

fn request(method: Method, body: &[u8]) -> Http2Request {
    Http2Request::new(&neutral(method, body), &common())
}

/// A connection with the output since the last check.
struct Client {
    connection: Http2Connection,
    out: Vec<u8>,
}

impl Client {
    /// Opens a connection that has received these settings.
    fn greeted(most_streams: usize, announced: &[(u16, u32)]) -> Self {
        let mut client = Self::new(most_streams);
        let events = client.receive(&settings(announced));
        assert!(matches!(events.as_deref(), Ok([Parsed::Room] | [])), "{events:?}");
        client.said();
        client
    }

    fn new(most_streams: usize) -> Self {
        let mut client = Self { connection: Http2Connection::new(most_streams, &common()), out: Vec::new() };
        client.connection.open(&mut client.out);
        client
    }

    fn get(&mut self) -> usize {
        self.connection.begin(&request(Method::GET, b""), Values::default(), &mut self.out)
    }

    fn get_times(&mut self, times: usize) {
        for _ in 0..times {
            self.get();
        }
    }

    fn post(&mut self, body: &[u8]) -> usize {
        self.connection.begin(&request(Method::POST, body), Values::default(), &mut self.out)
    }

    /// Everything reported for these bytes.
    fn receive(&mut self, mut bytes: &[u8]) -> Result<Vec<Parsed>, ErrorKind> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            let (taken, parsed) = self.connection.receive(bytes, &mut self.out).map_err(|error| error.0)?;
            assert!(taken > 0 || parsed != Parsed::Incomplete, "no progress");
            bytes = &bytes[taken..];
            if parsed != Parsed::Incomplete {
                events.push(parsed);
            }
        }
        Ok(events)
    }

    /// Frames sent since the last check: kind, flags, stream, payload.
    fn said(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let out = std::mem::take(&mut self.out);
        let mut rest = out.strip_prefix(PREFACE).unwrap_or(&out);
        let mut frames = Vec::new();
        while let Some(head) = rest.first_chunk().map(frame::FrameHead::parse) {
            let end = frame::HEAD_BYTES + head.length;
            frames.push((head.kind, head.flags, head.stream, rest[frame::HEAD_BYTES..end].to_vec()));
            rest = &rest[end..];
        }
        assert!(rest.is_empty(), "whole frames");
        frames
    }

    /// Bytes of content sent per stream since the last check, and whether that ended the stream.
    fn sent_content(&mut self) -> Vec<(u32, usize, bool)> {
        let frames = self.said().into_iter().filter(|frame| frame.0 == kind::DATA);
        frames.map(|(_, flags, stream, payload)| (stream, payload.len(), flags & END_STREAM != 0)).collect()
    }
}

fn response(stream: usize, status: u16, bytes: u64) -> Parsed {
    Parsed::Response(ResponseEnd { stream, status, bytes, reusable: true, grpc: None })
}

#[test]
fn connection_opens_with_preface_and_waits_for_settings() {
    let mut client = Client::new(2);
    assert!(client.out.starts_with(PREFACE));
    let said = client.said();
    assert_eq!(said.iter().map(|frame| frame.0).collect::<Vec<_>>(), [kind::SETTINGS, kind::WINDOW_UPDATE]);
    assert!(!client.connection.can_send());
    assert_eq!(client.receive(&settings(&[])), Ok(vec![Parsed::Room]));
    assert_eq!(client.said(), [(kind::SETTINGS, flag::ACK, 0, vec![])]);
    assert!(client.connection.can_send());
    // The acknowledgement of this side's own settings needs no reply.
    assert_eq!(client.receive(&frame(kind::SETTINGS, flag::ACK, 0, b"")), Ok(vec![]));
    assert!(client.out.is_empty());
}

#[test]
fn responses_arrive_in_any_order_with_their_bytes_counted() {
    let mut client = Client::greeted(3, &[]);
    assert_eq!([client.get(), client.get(), client.get()], [0, 1, 2]);
    assert!(!client.connection.can_send());
    let sent = client.said();
    assert_eq!(sent.iter().map(|frame| frame.2).collect::<Vec<_>>(), [1, 3, 5]);
    assert!(sent.iter().all(|frame| frame.0 == kind::HEADERS && frame.1 == END_HEADERS | END_STREAM));
    assert!(sent[1].3.len() < sent[0].3.len(), "the peer knows by now what stays the same");
    let bytes = [
        headers(5, END_STREAM, STATUS_200),
        headers(1, 0, STATUS_200),
        data(1, 0, &[b'x'; 100]),
        headers(3, 0, STATUS_200),
        data(1, END_STREAM, &[b'x'; 50]),
        data(3, 0, b"y"),
        data(3, END_STREAM, b""),
    ]
    .concat();
    let expected = vec![response(2, 200, 10), response(0, 200, 10 + 109 + 59), response(1, 200, 10 + 10 + 9)];
    assert_eq!(client.receive(&bytes), Ok(expected));
    // Slots are reused, identifiers are not.
    client.get();
    assert_eq!(client.said()[0].2, 7);
}

#[test]
fn concurrent_requests_stay_within_peers_limit() {
    let mut client = Client::greeted(10, &[(3, 1)]);
    client.get();
    assert!(!client.connection.can_send());
    assert_eq!(client.receive(&settings(&[(3, 2)])), Ok(vec![Parsed::Room]));
    client.get();
    assert!(!client.connection.can_send());
    assert_eq!(client.receive(&settings(&[(3, 0)])), Ok(vec![]));
    let both = [headers(1, END_STREAM, STATUS_200), headers(3, END_STREAM, STATUS_200)].concat();
    assert_eq!(client.receive(&both).map(|events| events.len()), Ok(2));
    assert!(!client.connection.can_send());
    assert_eq!(client.receive(&settings(&[(3, 100)])), Ok(vec![Parsed::Room]));
}

#[test]
fn interim_heads_trailers_and_responses_without_a_body() {
    // `:status: 100`, `:status: 103`; a trailer `a: b`; `content-length: 7`.
    let (interim, hints) = (&b"\x08\x03100"[..], &b"\x08\x03103"[..]);
    let (trailer, length) = (&b"\x00\x01a\x01b"[..], [STATUS_200, b"\x0f\x0d\x017"].concat());
    let mut client = Client::greeted(1, &[]);
    client.get();
    let bytes = [
        headers(1, 0, interim),
        headers(1, 0, hints),
        headers(1, 0, &length),
        data(1, 0, b"content"),
        headers(1, END_STREAM, trailer),
    ]
    .concat();
    assert_eq!(client.receive(&bytes), Ok(vec![response(0, 200, bytes.len() as u64)]));
    client.connection.begin(&request(Method::HEAD, b""), Values::default(), &mut client.out);
    assert_eq!(client.receive(&headers(3, END_STREAM, &length)), Ok(vec![response(0, 200, 14)]));
    client.get();
    // `:status: 304` with the length of the body that it omits.
    let unchanged = [&[0x8b], &length[1..]].concat();
    assert_eq!(client.receive(&headers(5, END_STREAM, &unchanged)), Ok(vec![response(0, 304, 14)]));
}

#[test]
fn malformed_response_fails_only_its_request() {
    let length = [STATUS_200, b"\x0f\x0d\x017"].concat();
    let cases: [(&str, Vec<u8>); 12] = [
        ("content before a head", data(1, END_STREAM, b"x")),
        ("less content than said", [headers(1, 0, &length), data(1, END_STREAM, b"six by")].concat()),
        ("more content than said", [headers(1, 0, &length), data(1, 0, b"far too much")].concat()),
        ("no content where some was said", headers(1, END_STREAM, &length)),
        ("two lengths", headers(1, END_STREAM, &[&length[..], b"\x0f\x0d\x018"].concat())),
        ("a length that is no number", headers(1, END_STREAM, &[STATUS_200, b"\x0f\x0d\x02+7"].concat())),
        ("no status", headers(1, END_STREAM, b"\x00\x01a\x01b")),
        ("two statuses", headers(1, END_STREAM, &[STATUS_200, STATUS_200].concat())),
        ("a status that is none", headers(1, END_STREAM, b"\x08\x032x0")),
        ("a pseudo-header of requests", headers(1, END_STREAM, &[STATUS_200, b"\x82"].concat())),
        ("an interim response that ends", headers(1, END_STREAM, b"\x08\x03100")),
        ("a name in upper case", headers(1, END_STREAM, &[STATUS_200, b"\x00\x01A\x01b"].concat())),
    ];
    for (what, bytes) in cases {
        let mut client = Client::greeted(2, &[]);
        client.get_times(2);
        client.said();
        let failed = Parsed::Failed(0, ErrorKind::MalformedResponse);
        assert_eq!(client.receive(&bytes), Ok(vec![failed]), "{what}");
        // A stream that the peer has not ended is reset.
        let ended = bytes[4] & END_STREAM != 0 || what == "less content than said";
        assert_eq!(client.said().len(), usize::from(!ended), "{what}");
        let other = headers(3, END_STREAM, STATUS_200);
        assert_eq!(client.receive(&other), Ok(vec![response(1, 200, 10)]), "{what}");
    }
}

#[test]
fn goaway_fails_unprocessed_requests_and_rest_completes() {
    let mut client = Client::greeted(4, &[]);
    client.get_times(3);
    // The first GOAWAY is only a warning.
    assert_eq!(client.receive(&goaway(u32::MAX >> 1, 0)), Ok(vec![Parsed::Closing]));
    assert!(!client.connection.can_send());
    let gone = |slot| Parsed::Failed(slot, ErrorKind::GoneAway);
    assert_eq!(client.receive(&goaway(1, 0)), Ok(vec![gone(1), gone(2), Parsed::Closing]));
    let last = ResponseEnd { stream: 0, status: 200, bytes: 10, reusable: false, grpc: None };
    assert_eq!(client.receive(&headers(1, END_STREAM, STATUS_200)), Ok(vec![Parsed::Response(last)]));
    assert_eq!(client.connection.end(), Ok(None));
}

#[test]
fn connection_end_reports_missing_responses() {
    let error = |kind| Err(ProtocolError(kind));
    assert_eq!(Client::new(1).connection.end(), error(ErrorKind::NotHttp2));
    assert_eq!(Client::greeted(1, &[]).connection.end(), Ok(None));
    let mut client = Client::greeted(1, &[]);
    client.get();
    assert_eq!(client.connection.end(), error(ErrorKind::Closed));
    client.receive(&goaway(1, 2)).unwrap();
    assert_eq!(client.connection.end(), error(ErrorKind::GoneAway));
    let mut client = Client::greeted(1, &[]);
    client.receive(&settings(&[])[..5]).unwrap();
    assert_eq!(client.connection.end(), error(ErrorKind::Closed));
}

#[test]
fn cancelled_stream_may_still_receive_frames() {
    let mut client = Client::greeted(2, &[]);
    client.get();
    client.said();
    client.connection.cancel(0, &mut client.out);
    let cancel = (ErrorCode::Cancel as u32).to_be_bytes().to_vec();
    assert_eq!(client.said(), [(kind::RST_STREAM, 0, 1, cancel)]);
    client.get();
    let late = [
        headers(1, 0, b"\x48\x03200\x40\x01a\x01b"),
        data(1, END_STREAM, b"late"),
        window_update(1, 5),
        reset(1, 0),
        // By the indices that the late head added: `a: b`, `:status: 200`.
        headers(3, END_STREAM, &[0xbf, 0xbe]),
    ]
    .concat();
    assert_eq!(client.receive(&late), Ok(vec![response(0, 200, 11)]));
}

#[test]
fn peer_may_refuse_or_reset_single_streams() {
    let mut client = Client::greeted(3, &[]);
    client.get_times(3);
    let bytes = [reset(3, 7), reset(1, 2), headers(5, END_STREAM, STATUS_200), reset(5, 0)].concat();
    let refused = Parsed::Failed(1, ErrorKind::StreamRefused);
    let given_up = Parsed::Failed(0, ErrorKind::StreamReset);
    assert_eq!(client.receive(&bytes), Ok(vec![refused, given_up, response(2, 200, 10)]));
}

#[test]
fn connection_without_identifiers_accepts_no_requests() {
    let mut client = Client::greeted(2, &[]);
    client.connection.streams.skip_to((1 << 31) - 3);
    client.get();
    assert_eq!(client.said()[0].2, (1 << 31) - 3);
    client.get();
    assert_eq!(client.said()[0].2, (1 << 31) - 1);
    assert!(!client.connection.can_send());
    for id in [(1 << 31) - 3, (1_u32 << 31) - 1] {
        let events = client.receive(&headers(id, END_STREAM, STATUS_200)).unwrap();
        assert!(matches!(events[..], [Parsed::Response(ResponseEnd { reusable: false, .. })]), "{events:?}");
    }
}

#[test]
fn long_head_is_split_into_frames_within_peers_limit() {
    let mut neutral = neutral(Method::POST, b"body");
    neutral.headers.push(Header::new("x-long", &"v".repeat(40_000)).unwrap());
    let request = Http2Request::new(&neutral, &CommonFields::default());
    let mut client = Client::greeted(1, &[]);
    client.connection.begin(&request, Values::default(), &mut client.out);
    let said = client.said();
    let kinds: Vec<_> = said.iter().map(|frame| (frame.0, frame.1, frame.3.len().min(16_384))).collect();
    let (middle, last) = ((kind::CONTINUATION, 0, 16_384), kinds[said.len() - 2]);
    assert_eq!(kinds[0], (kind::HEADERS, 0, 16_384));
    assert!(kinds[1..said.len() - 2].iter().all(|kind| *kind == middle), "{kinds:?}");
    assert_eq!((last.0, last.1), (kind::CONTINUATION, END_HEADERS));
    assert_eq!(kinds[said.len() - 1], (kind::DATA, END_STREAM, 4));
}

#[test]
fn ranges_in_path_headers_and_body_have_numbers_of_their_own() {
    let mut neutral = neutral(Method::POST, b"");
    neutral.path = Text::parse("/{1..9}").unwrap();
    for name in ["X-User", "Cookie"] {
        neutral.headers.push(Header::new(name, "u{1..1000}").unwrap().with_ranges());
    }
    neutral.body = Body::with_ranges(b"{\"id\": {1..1000}}");
    let request = Http2Request::new(&neutral, &CommonFields::from_requests([neutral.clone()].iter()));
    let (mut client, mut decoder) = (Client::greeted(2, &[]), http2::hpack::Decoder::default());
    for numbers in [[7, 42, 43, 1000], [8, 1, 2, 3]] {
        client.connection.begin(&request, numbers.as_slice().into(), &mut client.out);
        let said = client.said();
        let mut names = rules::Names::default();
        decoder.decode(&said[0].3, &mut names).unwrap();
        let sent = |name: &str| names.0.iter().find(|field| field.0 == name).map(|field| field.1.clone());
        assert_eq!(sent(":path"), Some(format!("/{}", numbers[0])));
        assert_eq!(sent("x-user"), Some(format!("u{}", numbers[1])));
        assert_eq!(sent("cookie"), Some(format!("u{}", numbers[2])));
        assert_eq!(sent("content-length"), None);
        assert_eq!((said[1].0, said[1].1), (kind::DATA, END_STREAM));
        assert_eq!(String::from_utf8_lossy(&said[1].3), format!("{{\"id\": {}}}", numbers[3]));
    }
}

#[test]
fn connection_fields_are_omitted_and_host_becomes_authority() {
    let mut neutral = neutral(Method::POST, b"body");
    for (name, value) in [
        ("connection", "close"),
        ("keep-alive", "5"),
        ("te", "gzip"),
        ("transfer-encoding", "chunked"),
        ("host", "shop.example"),
    ] {
        neutral.headers.push(Header::new(name, value).unwrap());
    }
    let request = Http2Request::new(&neutral, &CommonFields::default());
    let mut client = Client::greeted(1, &[]);
    client.connection.begin(&request, Values::default(), &mut client.out);
    let said = client.said();
    let mut names = rules::Names::default();
    http2::hpack::Decoder::default().decode(&said[0].3, &mut names).unwrap();
    let sent: Vec<_> = names.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let version = concat!("meshmeter/", env!("CARGO_PKG_VERSION"));
    let expected = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "shop.example"),
        (":path", "/cart"),
        ("user-agent", version),
        ("content-length", "4"),
    ];
    assert_eq!(sent, expected);
}
