//! WebSocket (RFC 6455) on connections that are opened with HTTP/1.1.
//!
//! A request is a message, and its response is the next message, or several that the peer pushes ([`Replies`]). Messages carry no
//! number, so that responses are matched by their order. Messages are counted and timed, and neither kept nor compared. Control
//! frames are answered and are no messages.

mod request;
#[cfg(test)]
mod tests;

pub(crate) use request::WebSocketRequest;

use super::http1::protocol_error;
use super::{Codec, Parsed, ProtocolError, ResponseEnd};
use crate::error::ErrorKind;
use crate::target::Values;
use ::http1::ResponseParser;
use ::http1::websocket::{
    Fault, FrameReader, MAX_MESSAGE_BYTES, Opcode, Received, Sender, is_accepted, new_key, write_close,
    write_frame,
};
use std::num::NonZeroU64;

/// Maximum size of the head that answers the request for the connection.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The purpose of the connection is fulfilled (RFC 6455, 7.4.1).
const CLOSE_NORMAL: u16 = 1000;
/// The peer goes away, such as a server that stops.
const CLOSE_GOING_AWAY: u16 = 1001;

/// The response to a message over WebSocket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Replies {
    /// One message, such as an echo. At most this many messages are unanswered on a connection; at least 1.
    InOrder(usize),
    /// A stream of messages with content, which ends after this many, or when the peer closes the connection without an error. A
    /// message without content is not sent: such a stream is what comes next.
    Pushed(Option<NonZeroU64>),
}

/// The state of one connection.
pub(crate) struct WebSocket {
    replies: Replies,
    /// The connection is not agreed on yet.
    opening: Option<Box<Opening>>,
    frames: FrameReader,
    /// A close frame was sent.
    is_closed: bool,
    /// Stream of the oldest unanswered request, and their number.
    oldest: usize,
    unanswered: usize,
    pushes: Pushes,
}

/// The handshake, as far as it has come.
struct Opening {
    key: String,
    parser: ResponseParser,
}

impl Opening {
    /// Reads the response to the request for the connection. Returns how many bytes were consumed, and true once it is agreed on.
    fn receive(&mut self, bytes: &[u8]) -> Result<(usize, bool), ProtocolError> {
        let (taken, status) = self.parser.receive_switch(bytes).map_err(protocol_error)?;
        match status {
            None => Ok((taken, false)),
            Some(101) if is_accepted(&self.parser, &self.key) => Ok((taken, true)),
            Some(status) => Err(ProtocolError(ErrorKind::of_upgrade(status))),
        }
    }
}

/// A stream of pushed messages, as far as it has come.
#[derive(Default)]
struct Pushes {
    /// Its beginning was reported, or need not be.
    is_begun: bool,
    received: u64,
    bytes: u64,
    /// Messages that are not reported.
    unreported: u32,
    /// What comes after them.
    outcome: Option<Result<Parsed, ProtocolError>>,
    /// The last byte that was read is consumed with the last report.
    is_withheld: bool,
}

impl Pushes {
    fn has_report(&self) -> bool {
        self.unreported > 0 || self.outcome.is_some()
    }

    /// The beginning of the stream, its messages, or its end: one after the other.
    fn next_report(&mut self) -> Option<Result<Parsed, ProtocolError>> {
        let is_ended = matches!(self.outcome, Some(Ok(Parsed::Response(_))));
        if (self.unreported > 0 || is_ended) && !std::mem::replace(&mut self.is_begun, true) {
            return Some(Ok(Parsed::EventStream(0)));
        }
        match std::mem::take(&mut self.unreported) {
            0 => self.outcome.take(),
            messages => Some(Ok(Parsed::Messages(0, messages))),
        }
    }
}

impl WebSocket {
    pub(crate) fn new(replies: Replies) -> Self {
        Self {
            replies,
            opening: None,
            frames: FrameReader::new(Sender::Server, MAX_MESSAGE_BYTES),
            is_closed: false,
            oldest: 0,
            unanswered: 0,
            pushes: Pushes::default(),
        }
    }

    fn open_with(&mut self, key: String, request: &WebSocketRequest, out: &mut Vec<u8>) {
        request.write_opening(&key, out);
        let opening = Opening { key, parser: ResponseParser::new(MAX_HEAD_BYTES) };
        *self = Self { opening: Some(Box::new(opening)), ..Self::new(self.replies) };
    }

    /// Reads up to the end of what is there, or to an outcome. Returns how many bytes were consumed.
    fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let mut taken = 0;
        while taken < bytes.len() && self.pushes.outcome.is_none() {
            let outcome = match self.frames.read(&bytes[taken..], None) {
                Ok((length, received)) => {
                    taken += length;
                    self.take(received, out)
                }
                Err(fault) => {
                    self.write_close(Some(fault.close_code()), out);
                    Some(Err(ProtocolError(match fault {
                        Fault::Protocol => ErrorKind::WebSocketProtocol,
                        Fault::TooLarge => ErrorKind::WebSocketMessageSize,
                    })))
                }
            };
            self.pushes.outcome = outcome;
        }
        taken
    }

    /// Takes what was read. Returns what it means, unless nothing or only that a stream goes on.
    fn take(&mut self, received: Received, out: &mut Vec<u8>) -> Option<Result<Parsed, ProtocolError>> {
        match received {
            Received::More | Received::Pong => None,
            Received::Ping => {
                write_frame(out, Opcode::Pong, self.frames.control(), Some(rand::random()));
                None
            }
            Received::Close(code) => {
                self.write_close(code, out);
                Some(self.closed(code))
            }
            Received::Message { content_bytes, frame_bytes, .. } => match self.replies {
                Replies::InOrder(_) if self.unanswered == 0 => {
                    Some(Err(ProtocolError(ErrorKind::SurplusBytes)))
                }
                Replies::InOrder(_) => Some(Ok(self.answered(frame_bytes, true))),
                Replies::Pushed(_) if self.unanswered == 0 || content_bytes == 0 => None,
                Replies::Pushed(expected) => {
                    let pushes = &mut self.pushes;
                    pushes.received += 1;
                    pushes.unreported += 1;
                    pushes.bytes += frame_bytes;
                    let is_last = expected.is_some_and(|expected| pushes.received >= expected.get());
                    let bytes = pushes.bytes;
                    is_last.then(|| Ok(self.answered(bytes, true)))
                }
            },
        }
    }

    /// The oldest request is answered.
    fn answered(&mut self, bytes: u64, reusable: bool) -> Parsed {
        let stream = self.oldest;
        self.oldest = (self.oldest + 1) % self.streams();
        self.unanswered -= 1;
        Parsed::Response(ResponseEnd { stream, status: 0, bytes, reusable, grpc: None })
    }

    /// The peer has closed the connection.
    fn closed(&mut self, code: Option<u16>) -> Result<Parsed, ProtocolError> {
        let is_error = !matches!(code, None | Some(CLOSE_NORMAL | CLOSE_GOING_AWAY));
        match self.replies {
            _ if is_error => Err(ProtocolError(ErrorKind::of_close(code))),
            _ if self.unanswered == 0 => Ok(Parsed::Closing),
            Replies::Pushed(None) => Ok(self.answered(self.pushes.bytes, false)),
            _ => Err(ProtocolError(ErrorKind::of_close(code))),
        }
    }

    fn write_close(&mut self, code: Option<u16>, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_closed, true) {
            write_close(out, code, Some(rand::random()));
        }
    }
}

impl Codec for WebSocket {
    type Request = WebSocketRequest;
    const MULTIPLEXED: bool = true;
    const NOT_GREETED: ErrorKind = ErrorKind::UpgradeTimeout;
    const FLOODED: ErrorKind = ErrorKind::WebSocketFlood;

    fn streams(&self) -> usize {
        match self.replies {
            Replies::InOrder(most) => most,
            Replies::Pushed(_) => 1,
        }
    }

    fn can_send(&self) -> bool {
        let is_open = self.opening.is_none() && !self.is_closed;
        is_open && self.unanswered < self.streams() && !self.pushes.has_report()
    }

    fn open(&mut self, request: &WebSocketRequest, out: &mut Vec<u8>) {
        self.open_with(new_key(rand::random()), request, out);
    }

    fn begin(&mut self, request: &WebSocketRequest, values: Values<'_>, out: &mut Vec<u8>) -> usize {
        let stream = (self.oldest + self.unanswered) % self.streams();
        self.unanswered += 1;
        let is_in_order = matches!(self.replies, Replies::InOrder(_));
        self.pushes = Pushes { is_begun: is_in_order, ..Pushes::default() };
        if !request.is_empty() || is_in_order {
            request.write_message(values, rand::random(), out);
        }
        stream
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError> {
        if let Some(opening) = &mut self.opening {
            let (taken, is_open) = opening.receive(bytes)?;
            if is_open {
                self.opening = None;
            }
            return Ok((taken, if is_open { Parsed::Room } else { Parsed::Incomplete }));
        }
        let read = if self.pushes.has_report() { 0 } else { self.read(bytes, out) };
        let Some(report) = self.pushes.next_report() else { return Ok((read, Parsed::Incomplete)) };
        let parsed = report?;
        let is_withheld = self.pushes.has_report();
        let was_withheld = std::mem::replace(&mut self.pushes.is_withheld, is_withheld);
        Ok((read + usize::from(was_withheld) - usize::from(is_withheld), parsed))
    }

    fn cancel(&mut self, _stream: usize, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.write_close(Some(CLOSE_NORMAL), out);
    }

    fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        let is_missed = self.opening.is_some() || self.unanswered > 0;
        if is_missed { Err(ProtocolError(ErrorKind::Closed)) } else { Ok(None) }
    }
}

/// Reads what a peer sends after the request for a connection, and checks that the pieces in which it arrives do not matter. The
/// first byte says what the messages are and how they are cut. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_connection(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let replies = match first >> 6 {
        0 => Replies::InOrder(1),
        1 => Replies::InOrder(3),
        2 => Replies::Pushed(NonZeroU64::new(2)),
        _ => Replies::Pushed(None),
    };
    let whole = reports(replies, bytes, bytes.len().max(1));
    let in_pieces = reports(replies, bytes, usize::from(first & 0x3f) + 1);
    assert_eq!(whole.1.is_ok(), in_pieces.1.is_ok(), "an error in one way of cutting alone");
    // Garbage where a response head should be is reported as soon as it is seen.
    if whole.1.is_ok() || !whole.0.is_empty() {
        assert_eq!(whole, in_pieces);
    }
}

/// All reports of a connection on which as many requests as possible are begun, with the messages of a stream added up, and its error.
fn reports(replies: Replies, bytes: &[u8], piece: usize) -> (Vec<Parsed>, Result<(), ErrorKind>) {
    /// The sample of RFC 6455, 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    let request = WebSocketRequest::for_check();
    let mut codec = WebSocket::new(replies);
    let (mut out, mut reported) = (Vec::new(), Vec::new());
    codec.open_with(KEY.to_owned(), &request, &mut out);
    for mut part in bytes.chunks(piece) {
        let mut idle_reports = 0;
        while !part.is_empty() {
            let (taken, parsed) = match codec.receive(part, &mut out) {
                Ok(progress) => progress,
                Err(error) => return (reported, Err(error.0)),
            };
            assert!(taken <= part.len(), "more is taken than there is");
            part = &part[taken..];
            idle_reports = if taken == 0 { idle_reports + 1 } else { 0 };
            assert!(idle_reports < 3, "the same bytes are reported forever");
            match (parsed, reported.last_mut()) {
                (Parsed::Incomplete, _) => assert!(part.is_empty(), "nothing is left over"),
                (Parsed::Messages(0, more), Some(Parsed::Messages(0, messages))) => *messages += more,
                _ => reported.push(parsed),
            }
            while codec.can_send() {
                codec.begin(&request, Values::default(), &mut out);
            }
        }
    }
    let ended = codec.end().map(drop).map_err(|error| error.0);
    (reported, ended)
}
