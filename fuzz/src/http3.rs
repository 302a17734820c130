//! Invariants of whatever a server of HTTP/3 sends. Included by the fuzz target and by the test that replays the corpus.

use load::http3::{Http3Connection, Http3Request, Parsed, RecordKind, Values, push, push_data};
use load::{ErrorKind, Request, RequestTemplate, resolve};
use std::sync::OnceLock;

const MAX_STREAMS: usize = 5;
/// Streams that parts of the input are for: those of requests, and those that the server opens.
const STREAMS: [u64; 8] = [0, 4, 8, 12, 16, 3, 7, 11];
/// Flags in the first byte of a part: the stream ends, or is reset, behind it.
const ENDS: u8 = 0x80;
const RESETS: u8 = 0x40;

fn requests() -> &'static [Http3Request; 3] {
    static REQUESTS: OnceLock<[Http3Request; 3]> = OnceLock::new();
    REQUESTS.get_or_init(|| {
        [("GET", 0), ("POST", 1000), ("HEAD", 0)]
            .map(|(method, bytes)| Http3Request::new(&neutral(method, &vec![b'x'; bytes])))
    })
}

fn neutral(method: &str, body: &[u8]) -> Request {
    let method = method.parse().expect("a method");
    let template = RequestTemplate { method, body: body.into(), ..RequestTemplate::default() };
    let targets = resolve(&["https://127.0.0.1:8443/cart".to_owned()], &template).expect("a good URL");
    targets.servers[0].requests[0].clone()
}

/// The first byte says how the records are cut into pieces, the second which requests are made. What follows are parts: a byte with
/// the stream and flags, a byte with the length, and so many bytes of that stream.
///
/// # Panics
/// Where something does not hold.
pub fn check(input: &[u8]) {
    let [first, second, parts @ ..] = input else { return };
    let records = records(parts);
    let whole = Client::new(*second).receive_all(&records, usize::MAX);
    let in_pieces = Client::new(*second).receive_all(&records, usize::from(*first) + 1);
    assert_eq!(whole, in_pieces, "pieces matter");
    let mut churning = Client::new(*second);
    churning.goes_on = true;
    churning.receive_all(&records, usize::from(*first) + 1);
}

/// The parts as the network hands them over.
fn records(mut parts: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    while let [head, length, rest @ ..] = parts {
        let (bytes, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        let stream = STREAMS[usize::from(head & 7)];
        if !bytes.is_empty() {
            push_data(RecordKind::Data, stream, &mut records, |out| out.extend_from_slice(bytes));
        }
        if head & RESETS != 0 {
            push(RecordKind::Reset, stream, 0x100 + u64::from(*length), &mut records);
        } else if head & ENDS != 0 {
            push(RecordKind::End, stream, 0, &mut records);
        }
        parts = rest;
    }
    records
}

/// Outcome of records: events, the error, the bytes that were sent.
type Outcome = (Vec<Parsed>, Option<ErrorKind>, Vec<u8>);

struct Client {
    connection: Http3Connection,
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
    fn new(choices: u8) -> Self {
        let (mut connection, mut out, mut room) = (Http3Connection::new(MAX_STREAMS), Vec::new(), Vec::new());
        connection.open(&mut out);
        (0..10).for_each(|index| push(RecordKind::Room, 4 * index, 0, &mut room));
        let (open, are_events) = ([false; MAX_STREAMS], [false; MAX_STREAMS]);
        let mut client = Self { connection, choices, goes_on: false, open, are_events, out };
        client.receive(&room, &mut Vec::new()).expect("room is good");
        client.begin();
        client
    }

    fn receive_all(mut self, bytes: &[u8], piece: usize) -> Outcome {
        let mut events = Vec::new();
        for part in bytes.chunks(piece.min(bytes.len().max(1))) {
            if let Err(kind) = self.receive(part, &mut events) {
                return (events, Some(kind), self.out);
            }
            if self.goes_on {
                self.begin();
                let chosen = usize::from(self.choices >> 4) % MAX_STREAMS;
                if self.open[chosen] && part.len().is_multiple_of(3) {
                    self.connection.cancel(chosen, &mut self.out);
                    self.open[chosen] = false;
                }
            }
        }
        let error = self.connection.end().err().map(|error| error.0);
        assert_eq!(error.is_some(), self.open.contains(&true), "a request is lost or invented");
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
            assert!(idle_turns <= MAX_STREAMS, "no progress");
            assert!(self.out.len() - before <= 34 * (bytes.len() + 1), "answers are short");
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
                assert!(self.are_events[stream] && self.open[stream] && messages > 0, "no such events");
                // How many are told at once depends on the pieces.
                if let Some(Parsed::Messages(before, sum)) = events.last_mut()
                    && *before == stream
                {
                    *sum += messages;
                    return;
                }
            }
            Parsed::EventStream(stream) => {
                assert!(self.open[stream], "nobody asked for events");
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
        let mut kinds = requests().iter().cycle().skip(usize::from(self.choices & 3));
        while self.connection.can_send() {
            let request = kinds.next().expect("there is always another");
            let stream = self.connection.begin(request, Values::default(), &mut self.out);
            assert!(!std::mem::replace(&mut self.open[stream], true), "a stream is used twice");
            self.are_events[stream] = false;
        }
    }
}
