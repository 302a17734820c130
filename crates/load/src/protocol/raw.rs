//! Raw bytes over TCP or TLS: requests and replies of fixed sizes, one at a time per connection.
//!
//! Byte `i` of every message is `i mod 251` (see [`pattern`]), unless the request's bytes are given. This
//! allows the replies of an echo server and of `meshmeter serve --tcp-listen` to be checked byte by byte.

use super::{Codec, Parsed, ProtocolError, ResponseEnd};
use crate::error::ErrorKind;
use crate::target::{Request, Values};
use std::sync::Arc;

/// A prime just below 256, so that shifts by a power of two are detected.
const PERIOD: usize = 251;

/// The reply to expect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExpectedReply {
    /// Its size in bytes; at least 1.
    pub bytes: u64,
    /// If true, its bytes are compared with the pattern.
    pub checked: bool,
}

/// A message of `bytes` bytes, byte `i` of which is `i mod 251`.
#[must_use]
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index % PERIOD) as u8).collect()
}

/// A message to send.
#[derive(Default)]
pub(crate) struct RawRequest(Arc<[u8]>);

impl RawRequest {
    pub(crate) fn new(request: &Request) -> Self {
        Self(request.body.bytes(Values::default()))
    }
}

/// The state of one connection.
pub(crate) struct Raw {
    expected: ExpectedReply,
    /// Received bytes of the reply; `None` if none is awaited.
    received: Option<u64>,
}

impl Raw {
    pub(crate) fn new(expected: ExpectedReply) -> Self {
        Self { expected, received: None }
    }
}

impl Codec for Raw {
    type Request = RawRequest;
    const MULTIPLEXED: bool = false;

    fn streams(&self) -> usize {
        1
    }

    fn can_send(&self) -> bool {
        self.received.is_none()
    }

    fn open(&mut self, _request: &RawRequest, _out: &mut Vec<u8>) {
        self.received = None;
    }

    fn begin(&mut self, request: &RawRequest, _values: Values<'_>, out: &mut Vec<u8>) -> usize {
        self.received = Some(0);
        out.extend_from_slice(&request.0);
        0
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError> {
        let ExpectedReply { bytes: expected, checked } = self.expected;
        let before = self.received.ok_or(ProtocolError(ErrorKind::SurplusBytes))?;
        let taken = bytes.len().min(usize::try_from(expected - before).unwrap_or(usize::MAX));
        if checked && !follows_pattern(&bytes[..taken], before) {
            return Err(ProtocolError(ErrorKind::WrongReply));
        }
        let received = before + taken as u64;
        if received < expected {
            self.received = Some(received);
            return Ok((taken, Parsed::Incomplete));
        }
        self.received = None;
        // Raw bytes have no status: 0 is not reported as one.
        let end = ResponseEnd { stream: 0, status: 0, bytes: received, reusable: true, grpc: None };
        Ok((taken, Parsed::Response(end)))
    }

    fn cancel(&mut self, _stream: usize, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        if self.received.is_some() { Err(ProtocolError(ErrorKind::Closed)) } else { Ok(None) }
    }
}

/// True if these are the pattern's bytes starting at `offset`.
fn follows_pattern(bytes: &[u8], offset: u64) -> bool {
    let mut expected = (offset % PERIOD as u64) as usize;
    bytes.iter().all(|byte| {
        let same = usize::from(*byte) == expected;
        expected = if expected + 1 == PERIOD { 0 } else { expected + 1 };
        same
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaiting(bytes: u64, checked: bool) -> Raw {
        let mut codec = Raw::new(ExpectedReply { bytes, checked });
        let mut out = Vec::new();
        codec.begin(&RawRequest(pattern(600).into()), Values::default(), &mut out);
        assert_eq!(out, pattern(600));
        codec
    }

    #[test]
    fn reply_is_complete_at_its_size_in_any_pieces() {
        let reply = pattern(1000);
        for piece in [1, 7, 250, 251, 252, 1000] {
            let mut codec = awaiting(1000, true);
            let outcomes: Vec<_> =
                reply.chunks(piece).map(|bytes| codec.receive(bytes, &mut Vec::new()).unwrap()).collect();
            let (last, others) = outcomes.split_last().unwrap();
            assert!(others.iter().all(|(_, parsed)| *parsed == Parsed::Incomplete));
            assert!(matches!(last.1, Parsed::Response(ResponseEnd { bytes: 1000, .. })), "{last:?}");
            assert!(codec.can_send());
        }
    }

    #[test]
    fn wrong_surplus_and_missing_bytes_are_distinguished() {
        let mut reply = pattern(400);
        reply[300] ^= 1;
        let wrong = Err(ProtocolError(ErrorKind::WrongReply));
        assert_eq!(awaiting(400, true).receive(&reply, &mut Vec::new()), wrong);
        let mut unchecked = awaiting(300, false);
        assert!(matches!(unchecked.receive(&reply, &mut Vec::new()), Ok((300, Parsed::Response(_)))));
        let surplus = Err(ProtocolError(ErrorKind::SurplusBytes));
        assert_eq!(unchecked.receive(&reply[300..], &mut Vec::new()), surplus);
        assert_eq!(unchecked.end(), Ok(None));
        assert_eq!(awaiting(300, true).end(), Err(ProtocolError(ErrorKind::Closed)));
    }
}
