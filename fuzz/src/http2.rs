//! What must hold for whatever a server of HTTP/2 sends. Included by the fuzz target and by the test that replays the corpus.

use load::http2::{CommonFields, Http2Connection, Http2Request, Parsed};
use load::{ErrorKind, RequestTemplate, resolve};
use std::sync::OnceLock;

const MOST_STREAMS: usize = 5;
/// An empty SETTINGS frame, as most servers begin.
const GREETING: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

struct Requests {
    common: CommonFields,
    get: Http2Request,
    post: Http2Request,
    head: Http2Request,
}

fn requests() -> &'static Requests {
    static REQUESTS: OnceLock<Requests> = OnceLock::new();
    REQUESTS.get_or_init(|| {
        let neutral = |method: &str, body: &[u8]| {
            let method = method.parse().expect("a method");
            let template = RequestTemplate { method, body: body.into(), ..RequestTemplate::default() };
            let targets = resolve(&["http://127.0.0.1:8080/cart".to_owned()], &template).expect("a good URL");
            targets.servers[0].requests[0].clone()
        };
        let neutrals = [neutral("GET", b""), neutral("POST", &[b'x'; 100_000]), neutral("HEAD", b"")];
        let common = CommonFields::of(neutrals.iter());
        let [get, post, head] = neutrals.each_ref().map(|request| Http2Request::new(request, &common));
        Requests { common, get, post, head }
    })
}

/// The first byte says how the rest is cut into pieces, the second whether the server greets by itself and which requests
/// are made and given up.
///
/// # Panics
/// Where something does not hold.
pub fn check(input: &[u8]) {
    let [first, second, bytes @ ..] = input else { return };
    let greeted = second & 1 != 0;
    let whole = Client::new(*second).receive_all(bytes, usize::MAX, greeted);
    let in_pieces = Client::new(*second).receive_all(bytes, usize::from(*first) + 1, greeted);
    assert_eq!(whole, in_pieces, "pieces matter");
    let mut churning = Client::new(*second);
    churning.goes_on = true;
    churning.receive_all(bytes, usize::from(*first) + 1, greeted);
}

/// What bytes brought: events, the error, what was sent.
type Outcome = (Vec<Parsed>, Option<ErrorKind>, Vec<u8>);

struct Client {
    connection: Http2Connection,
    /// Which requests are made and given up.
    choices: u8,
    /// Begins another request when one has ended, and gives some up.
    goes_on: bool,
    /// Streams that are open as far as this side was told.
    open: [bool; MOST_STREAMS],
    out: Vec<u8>,
}

impl Client {
    fn new(choices: u8) -> Self {
        let mut connection = Http2Connection::new(MOST_STREAMS, &requests().common);
        let mut out = Vec::new();
        connection.open(&mut out);
        Self { connection, choices, goes_on: false, open: [false; MOST_STREAMS], out }
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
                return (events, Some(kind), self.out);
            }
            if self.goes_on {
                self.begin();
                let chosen = usize::from(self.choices >> 4) % MOST_STREAMS;
                if self.open[chosen] && part.len().is_multiple_of(3) {
                    self.give_up(chosen);
                }
            }
        }
        let error = self.connection.end().err().map(|error| error.0);
        (events, error, self.out)
    }

    fn receive(&mut self, mut bytes: &[u8], events: &mut Vec<Parsed>) -> Result<(), ErrorKind> {
        let mut idle_turns = 0;
        while !bytes.is_empty() {
            let before = self.out.len();
            let (taken, parsed) = self.connection.receive(bytes, &mut self.out).map_err(|error| error.0)?;
            assert!(taken <= bytes.len(), "more is taken than there is");
            assert!(parsed != Parsed::Incomplete || taken == bytes.len(), "nothing is left over");
            idle_turns = if taken == 0 { idle_turns + 1 } else { 0 };
            assert!(idle_turns <= MOST_STREAMS, "no progress");
            // Answers are no longer than what is answered, but for bodies that wait and the last word.
            let sent = self.out.len() - before;
            assert!(sent <= 13 * bytes.len() + MOST_STREAMS * 110_000 + 100, "{sent} bytes sent");
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
            Parsed::Messages(..) => panic!("no request was a gRPC call"),
            Parsed::Incomplete | Parsed::Room | Parsed::Closing => {}
        }
        if parsed != Parsed::Incomplete {
            events.push(parsed);
        }
    }

    /// Begins as many requests as there is room for, of different kinds.
    fn begin(&mut self) {
        let Requests { get, post, head, .. } = requests();
        let mut kinds = [get, post, head].into_iter().cycle().skip(usize::from(self.choices >> 2 & 3));
        while self.connection.has_room() {
            let request = kinds.next().expect("there is always another");
            let stream = self.connection.begin(request, &[], &mut self.out);
            assert!(!std::mem::replace(&mut self.open[stream], true), "a stream is used twice");
        }
    }

    fn give_up(&mut self, stream: usize) {
        self.connection.cancel(stream, &mut self.out);
        self.open[stream] = false;
    }
}
