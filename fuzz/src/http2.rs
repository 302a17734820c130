//! Invariants of whatever a server of HTTP/2 sends. Included by the fuzz target and by the test that replays the corpus.

use load::http2::{CommonFields, Http2Connection, Http2Request, Parsed, Values};
use load::{ErrorKind, GrpcCall, Request, RequestTemplate, resolve};
use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::time::Duration;

const MAX_STREAMS: usize = 5;
/// An empty SETTINGS frame, as most servers begin.
const GREETING: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

struct Requests {
    common: CommonFields,
    /// GET, POST with a body that needs more than one window, HEAD.
    plain: [Http2Request; 3],
    /// gRPC: unary, a stream each way, a dialogue.
    calls: [Http2Request; 3],
}

fn requests() -> &'static Requests {
    static REQUESTS: OnceLock<Requests> = OnceLock::new();
    REQUESTS.get_or_init(|| {
        let plain = [neutral("GET", b""), neutral("POST", &[b'x'; 100_000]), neutral("HEAD", b"")];
        let calls = calls().map(|call| {
            let mut request = neutral("POST", b"");
            request.make_call("/shop.Cart/Add", call, Duration::from_secs(1));
            request
        });
        let common = CommonFields::from_requests(plain.iter().chain(&calls));
        let [plain, calls] =
            [plain, calls].map(|kinds| kinds.each_ref().map(|request| Http2Request::new(request, &common)));
        Requests { common, plain, calls }
    })
}

fn neutral(method: &str, body: &[u8]) -> Request {
    let method = method.parse().expect("a method");
    let template = RequestTemplate { method, body: body.into(), ..RequestTemplate::default() };
    let targets = resolve(&["http://127.0.0.1:8080/cart".to_owned()], &template).expect("a good URL");
    targets.servers[0].requests[0].clone()
}

fn calls() -> [GrpcCall; 3] {
    let messages = [vec![b'x'; 10], Vec::new(), vec![b'y'; 50_000]];
    let count = NonZeroU64::new(7).expect("seven");
    let calls = [
        GrpcCall::unary(&messages, false),
        GrpcCall::stream(&messages, count, true),
        GrpcCall::dialogue(&messages[..2], count),
    ];
    calls.map(|call| call.expect("short messages"))
}

/// The first byte says how the rest is cut into pieces, and whether requests are gRPC calls; the second whether the server
/// greets by itself and which requests are made and given up.
///
/// # Panics
/// Where something does not hold.
pub fn check(input: &[u8]) {
    let [first, second, bytes @ ..] = input else { return };
    let greeted = second & 1 != 0;
    let (are_calls, piece) = (first & 0x80 != 0, usize::from(first & 0x7f) + 1);
    let client = || Client::new(*second, are_calls);
    let whole = client().receive_all(bytes, usize::MAX, greeted);
    let in_pieces = client().receive_all(bytes, piece, greeted);
    assert_eq!(whole, in_pieces, "pieces matter");
    let mut churning = client();
    churning.goes_on = true;
    churning.receive_all(bytes, piece, greeted);
}

/// Outcome of bytes: events, the error, the frames that were sent.
type Outcome = (Vec<Parsed>, Option<ErrorKind>, Vec<Frame>);

struct Client {
    connection: Http2Connection,
    kinds: &'static [Http2Request; 3],
    /// Requests are gRPC calls.
    are_calls: bool,
    /// Choice of the requests that are made and given up.
    choices: u8,
    /// Begins another request when one has ended, and gives some up.
    goes_on: bool,
    /// Streams that are open as far as this side was told.
    open: [bool; MAX_STREAMS],
    /// Streams whose response is a stream of events.
    are_events: [bool; MAX_STREAMS],
    out: Vec<u8>,
}

impl Client {
    fn new(choices: u8, are_calls: bool) -> Self {
        let Requests { common, plain, calls } = requests();
        let mut connection = Http2Connection::new(MAX_STREAMS, common);
        let mut out = Vec::new();
        connection.open(&mut out);
        let kinds = if are_calls { calls } else { plain };
        let (open, are_events) = ([false; MAX_STREAMS], [false; MAX_STREAMS]);
        Self { connection, kinds, are_calls, choices, goes_on: false, open, are_events, out }
    }

    fn receive_all(mut self, bytes: &[u8], piece: usize, greeted: bool) -> Outcome {
        let mut events = Vec::new();
        if greeted {
            self.receive(GREETING, &mut events).expect("a good greeting");
            self.begin();
            if self.choices & 2 != 0 && self.open[0] {
                self.give_up(0);
            }
        }
        for part in bytes.chunks(piece.min(bytes.len().max(1))) {
            if let Err(kind) = self.receive(part, &mut events) {
                return (events, Some(kind), frames(&self.out));
            }
            if self.goes_on {
                self.begin();
                let chosen = usize::from(self.choices >> 4) % MAX_STREAMS;
                if self.open[chosen] && part.len().is_multiple_of(3) {
                    self.give_up(chosen);
                }
            }
        }
        let error = self.connection.end().err().map(|error| error.0);
        (events, error, frames(&self.out))
    }

    fn receive(&mut self, mut bytes: &[u8], events: &mut Vec<Parsed>) -> Result<(), ErrorKind> {
        let mut idle_turns = 0;
        while !bytes.is_empty() {
            let before = self.out.len();
            let (taken, parsed) = self.connection.receive(bytes, &mut self.out).map_err(|error| error.0)?;
            assert!(taken <= bytes.len(), "more is taken than there is");
            assert!(parsed != Parsed::Incomplete || taken == bytes.len(), "nothing is left over");
            idle_turns = if taken == 0 { idle_turns + 1 } else { 0 };
            assert!(idle_turns <= MAX_STREAMS, "no progress");
            // Answers are no longer than what is answered, but for bodies that wait and the last word.
            let sent = self.out.len() - before;
            assert!(sent <= 13 * bytes.len() + MAX_STREAMS * 110_000 + 100, "{sent} bytes sent");
            bytes = &bytes[taken..];
            self.told(parsed, events);
        }
        Ok(())
    }

    fn told(&mut self, parsed: Parsed, events: &mut Vec<Parsed>) {
        match parsed {
            Parsed::Response(end) => {
                assert!((200..1000).contains(&end.status), "the status of a final response");
                assert!(std::mem::take(&mut self.open[end.stream]), "nobody asked on this stream");
            }
            Parsed::Failed(stream, _) => {
                assert!(std::mem::take(&mut self.open[stream]), "nobody asked on this stream");
            }
            Parsed::Messages(stream, messages) => {
                let has_messages = self.are_calls || self.are_events[stream];
                assert!(has_messages && self.open[stream] && messages > 0, "nobody asked for messages");
                // How many are told at once depends on the pieces.
                if let Some(Parsed::Messages(before, sum)) = events.last_mut()
                    && *before == stream
                {
                    *sum += messages;
                    return;
                }
            }
            Parsed::EventStream(stream) => {
                assert!(!self.are_calls && self.open[stream], "nobody asked for events");
                assert!(!std::mem::replace(&mut self.are_events[stream], true), "a stream begins twice");
            }
            Parsed::Incomplete | Parsed::Room | Parsed::Closing => {}
        }
        if parsed != Parsed::Incomplete {
            events.push(parsed);
        }
    }

    /// Begins as many requests as there is room for, of different kinds.
    fn begin(&mut self) {
        let mut kinds = self.kinds.iter().cycle().skip(usize::from(self.choices >> 2 & 3));
        while self.connection.can_send() {
            let request = kinds.next().expect("there is always another");
            let stream = self.connection.begin(request, Values::default(), &mut self.out);
            assert!(!std::mem::replace(&mut self.open[stream], true), "a stream is used twice");
            self.are_events[stream] = false;
        }
    }

    fn give_up(&mut self, stream: usize) {
        self.connection.cancel(stream, &mut self.out);
        self.open[stream] = false;
    }
}

/// A frame that was sent: kind, flags, stream, payload.
type Frame = (u8, u8, u32, Vec<u8>);

/// Frames that a client sent. Content that follows upon content of the same stream is one with it: how many
/// messages go into a frame depends on how many were answered at once.
fn frames(out: &[u8]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut rest = out.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("the preface comes first");
    while !rest.is_empty() {
        let (head, behind) = rest.split_at(9);
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (payload, behind) = behind.split_at(length);
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        match frames.last_mut() {
            Some((0, last_flags @ 0, last_stream, content)) if kind == 0 && *last_stream == stream => {
                *last_flags = flags;
                content.extend_from_slice(payload);
            }
            _ => frames.push((kind, flags, stream, payload.to_vec())),
        }
        rest = behind;
    }
    frames
}
