//! Invariants of a connection, whatever a server sends.

use super::super::grpc::{Deframer, Piece, frame_message};
use super::{Ending, Event, Http2, MAX_BLOCK_BYTES, RequestHead};
use http2::frame::{DEFAULT_MAX_FRAME_BYTES, HEAD_BYTES};

const MESSAGE_LIMIT_BYTES: usize = 100_000;
/// A request that needs more than the initial window.
const REQUEST_BYTES: usize = 100_000;
/// Maximum output per frame of the server: an acknowledged PING, or two WINDOW_UPDATEs.
const MAX_REPLY_BYTES: usize = 2 * (HEAD_BYTES + 4);

/// Feeds bytes to a connection as those of a server, and checks invariants: how they are cut does not matter, messages are as
/// long as they begin, requests keep to the server's windows, and what is held and sent is bounded by what was received. The
/// first byte is the length of pieces. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_connection(input: &[u8]) {
    let Some((piece, bytes)) = input.split_first() else { return };
    let whole = Run::new().receive(bytes, usize::MAX);
    let in_pieces = Run::new().receive(bytes, usize::from(*piece) + 1);
    assert_eq!(whole, in_pieces);
}

/// Result of a server's bytes.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Announced length and body of each message; the last one may be incomplete.
    messages: Vec<(usize, Vec<u8>)>,
    readies: usize,
    pongs: usize,
    ending: Option<Ending>,
    sent: Vec<u8>,
}

struct Run {
    http2: Http2,
    deframer: Deframer,
    outcome: Outcome,
}

impl Run {
    fn new() -> Self {
        let mut http2 = Http2::new();
        let head =
            RequestHead { scheme: "http", authority: "istiod", path: "/a/b", token: None, cluster_id: "" };
        http2.open(&head);
        let mut request = Vec::new();
        frame_message(&vec![b'x'; REQUEST_BYTES], &mut request);
        http2.send(&request);
        http2.take_output();
        Self { http2, deframer: Deframer::default(), outcome: Outcome::default() }
    }

    fn receive(mut self, bytes: &[u8], piece: usize) -> Outcome {
        for part in bytes.chunks(piece) {
            let Self { http2, deframer, outcome } = &mut self;
            let received = http2.receive(part, &mut |event| outcome.take(deframer, &event));
            outcome.sent.extend(http2.take_output());
            outcome.ending = received.err().map(|ending| http2.explain(ending));
            assert!(http2.collected.len() <= MAX_BLOCK_BYTES + DEFAULT_MAX_FRAME_BYTES);
            if outcome.ending.is_some() {
                break;
            }
        }
        self.check_sent(bytes.len());
        self.outcome
    }

    fn check_sent(&self, received_bytes: usize) {
        let frames = received_bytes / HEAD_BYTES + 1;
        let frames_of_request = frames + REQUEST_BYTES / DEFAULT_MAX_FRAME_BYTES + 1;
        let request_bytes = REQUEST_BYTES + HEAD_BYTES * frames_of_request;
        assert!(self.outcome.sent.len() <= request_bytes + MAX_REPLY_BYTES * frames);
        assert!(self.http2.connection_window >= 0);
    }
}

impl Outcome {
    fn take(&mut self, deframer: &mut Deframer, event: &Event<'_>) -> Result<(), Ending> {
        match event {
            Event::Ready => self.readies += 1,
            Event::Pong => self.pongs += 1,
            Event::Data(data) => {
                assert!(!data.is_empty());
                return deframer.receive(data, MESSAGE_LIMIT_BYTES, |piece| {
                    self.take_piece(&piece);
                    Ok(())
                });
            }
        }
        assert!(self.readies <= 1);
        Ok(())
    }

    fn take_piece(&mut self, piece: &Piece<'_>) {
        match (piece, self.messages.last_mut()) {
            (Piece::Start(length), _) => {
                assert!(*length <= MESSAGE_LIMIT_BYTES);
                self.messages.push((*length, Vec::new()));
            }
            (Piece::Body(part), Some((length, body))) => {
                body.extend_from_slice(part);
                assert!(!part.is_empty() && body.len() <= *length);
            }
            (Piece::End, Some((length, body))) => assert_eq!(body.len(), *length),
            (Piece::Body(_) | Piece::End, None) => panic!("a message ends that did not begin"),
        }
    }
}
