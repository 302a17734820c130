//! The request side of a call: its messages, framed once before the run.

use super::frames::PREFIX_BYTES;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderName, HeaderValue};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// Maximum message size in bytes: a prefix can hold no greater length.
const MAX_MESSAGE_BYTES: usize = u32::MAX as usize;

/// Messages that a call sends, and the kind of response that it expects.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcCall {
    /// Framed messages; not empty.
    messages: Arc<[Arc<[u8]>]>,
    /// Number of messages that each call sends.
    count: u64,
    /// Each further message is sent when the server has answered the previous one.
    in_turn: bool,
    /// The method returns a single response message.
    pub(crate) one_answer: bool,
}

/// Messages that no call can send.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CallError {
    /// There are no messages.
    #[error("a call needs a message")]
    NoMessage,
    /// A message exceeds the length limit of gRPC.
    #[error("a message is longer than 4 GiB")]
    TooLong,
}

impl GrpcCall {
    /// A call with one message. With several messages, the calls of each connection use them in rotation.
    /// `server_streams`: the response is a stream instead of a single message.
    ///
    /// # Errors
    /// Returns an error if there is no message, or if one exceeds the length limit of gRPC.
    pub fn unary(messages: &[Vec<u8>], server_streams: bool) -> Result<Self, CallError> {
        Ok(Self { messages: frame(messages)?, count: 1, in_turn: false, one_answer: !server_streams })
    }

    /// A call with `count` messages, starting with the first and repeating; all are sent as soon as the
    /// peer's window allows.
    ///
    /// # Errors
    /// As for [`Self::unary`].
    pub fn stream(messages: &[Vec<u8>], count: NonZeroU64, server_streams: bool) -> Result<Self, CallError> {
        Ok(Self { count: count.get(), ..Self::unary(messages, server_streams)? })
    }

    /// A dialogue of `count` messages: each but the first is sent when the server has answered the one
    /// before.
    ///
    /// # Errors
    /// As for [`Self::unary`].
    pub fn dialogue(messages: &[Vec<u8>], count: NonZeroU64) -> Result<Self, CallError> {
        Ok(Self { in_turn: true, ..Self::stream(messages, count, true)? })
    }

    /// The message with this number, counted over all messages of one call or one connection.
    fn message(&self, number: u64) -> Arc<[u8]> {
        Arc::clone(&self.messages[(number % self.messages.len() as u64) as usize])
    }

    /// Messages to send for the call with this number on its connection.
    pub(crate) fn outgoing(&self, number: u64) -> OutgoingMessages {
        // A call with one message takes the next one; a stream starts with the first.
        let first = if self.count == 1 { number } else { 0 };
        let released = if self.in_turn { 1 } else { self.count };
        OutgoingMessages { call: self.clone(), first, begun: 0, released }
    }
}

/// The messages of a call in progress.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingMessages {
    call: GrpcCall,
    /// Number of its first message.
    first: u64,
    /// Messages whose sending has begun.
    begun: u64,
    /// Messages that may be sent by now.
    released: u64,
}

impl OutgoingMessages {
    /// Next message, if it may be sent by now, and whether it is the last one.
    pub(crate) fn next(&mut self) -> Option<(Arc<[u8]>, bool)> {
        if self.begun >= self.released.min(self.call.count) {
            return None;
        }
        let message = self.call.message(self.first + self.begun);
        self.begun += 1;
        Some((message, self.begun == self.call.count))
    }

    /// The server sent this many messages: a dialogue may send as many more.
    pub(crate) fn answered(&mut self, messages: u32) {
        if self.call.in_turn {
            self.released = self.released.saturating_add(u64::from(messages));
        }
    }

    /// Messages whose sending has begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Bytes of the messages whose sending has not begun, with their prefixes.
    pub(crate) fn missing_bytes(&self) -> usize {
        let lengths = || self.call.messages.iter().map(|message| message.len());
        let (distinct, missing) = (self.call.messages.len() as u64, self.call.count - self.begun);
        let next = ((self.first + self.begun) % distinct) as usize;
        let rest = lengths().cycle().skip(next).take((missing % distinct) as usize).sum::<usize>();
        lengths().sum::<usize>().saturating_mul((missing / distinct) as usize) + rest
    }

    /// True if there are messages whose sending has not begun.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.begun < self.call.count
    }
}

/// Headers of every call in addition to the method's path. `timeout` is sent, so that the server may end the
/// call, too.
pub(crate) fn headers(timeout: Duration) -> [(HeaderName, HeaderValue); 3] {
    // At most eight digits: microseconds below 100 s.
    let timeout = match timeout.as_micros() {
        micros @ ..100_000_000 => format!("{micros}u"),
        _ => format!("{}m", timeout.as_millis().min(99_999_999)),
    };
    let timeout = HeaderValue::try_from(timeout).expect("digits and a letter");
    [
        (TE, HeaderValue::from_static("trailers")),
        (CONTENT_TYPE, HeaderValue::from_static("application/grpc")),
        (HeaderName::from_static("grpc-timeout"), timeout),
    ]
}

/// Adds the prefix to each message: a flag (not compressed) and the length.
fn frame(messages: &[Vec<u8>]) -> Result<Arc<[Arc<[u8]>]>, CallError> {
    if messages.is_empty() {
        return Err(CallError::NoMessage);
    }
    let framed = messages.iter().map(|message| {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(CallError::TooLong);
        }
        let mut framed = Vec::with_capacity(PREFIX_BYTES + message.len());
        framed.push(0);
        framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
        framed.extend_from_slice(message);
        Ok(framed.into())
    });
    framed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_prefixed_and_repeated() {
        let call = GrpcCall::unary(&[b"ab".to_vec(), Vec::new()], false).unwrap();
        assert_eq!(*call.message(0), [0, 0, 0, 0, 2, b'a', b'b']);
        assert_eq!(*call.message(1), [0; 5]);
        assert_eq!(call.message(2), call.message(0));
        assert_eq!(GrpcCall::unary(&[], false), Err(CallError::NoMessage));
    }

    #[test]
    fn dialogue_continues_with_each_response() {
        let count = NonZeroU64::new(3).unwrap();
        let call = GrpcCall::dialogue(&[b"a".to_vec(), b"b".to_vec()], count).unwrap();
        let mut outgoing = call.outgoing(7);
        assert_eq!(outgoing.next(), Some((call.message(0), false)));
        assert_eq!(outgoing.next(), None);
        outgoing.answered(2);
        assert_eq!(outgoing.next(), Some((call.message(1), false)));
        assert!(outgoing.is_unfinished());
        assert_eq!(outgoing.next(), Some((call.message(0), true)));
        outgoing.answered(1);
        assert_eq!((outgoing.next(), outgoing.begun()), (None, 3));
    }

    #[test]
    fn unary_calls_rotate_messages_and_streams_start_with_first() {
        let messages = [b"a".to_vec(), b"b".to_vec()];
        let unary = GrpcCall::unary(&messages, false).unwrap();
        assert_eq!(unary.outgoing(3).next(), Some((unary.message(1), true)));
        let stream = GrpcCall::stream(&messages, NonZeroU64::new(2).unwrap(), false).unwrap();
        let mut outgoing = stream.outgoing(3);
        assert_eq!(outgoing.next(), Some((stream.message(0), false)));
        assert_eq!(outgoing.next(), Some((stream.message(1), true)));
    }

    #[test]
    fn missing_bytes_are_counted_for_repeated_messages() {
        let messages: Vec<Vec<u8>> = [1, 10, 100].map(|bytes| vec![0; bytes]).to_vec();
        let count = NonZeroU64::new(8).unwrap();
        let mut outgoing = GrpcCall::stream(&messages, count, false).unwrap().outgoing(0);
        let all = 2 * 111 + 1 + 10 + 8 * PREFIX_BYTES;
        assert_eq!(outgoing.missing_bytes(), all);
        for sent in [6, 15, 105, 6, 15, 105, 6, 15].iter().scan(0, |sum, bytes| {
            *sum += bytes;
            Some(*sum)
        }) {
            outgoing.next();
            assert_eq!(outgoing.missing_bytes(), all - sent);
        }
    }

    #[test]
    fn timeout_has_at_most_eight_digits() {
        for (timeout, expected) in [
            (Duration::from_micros(1500), "1500u"),
            (Duration::from_secs(99), "99000000u"),
            (Duration::from_secs(100), "100000m"),
            (Duration::from_secs(1_000_000), "99999999m"),
        ] {
            assert_eq!(headers(timeout)[2].1, expected);
        }
    }
}
