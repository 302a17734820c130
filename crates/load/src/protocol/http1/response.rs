//! A parser for consecutive responses, from bytes split at any positions.

use super::super::{Parsed, ProtocolError, ResponseEnd};
use super::body::{Body, Framing};
use super::head::{self, Head};
use super::recent::RecentHead;
use crate::error::ErrorKind;

/// Maximum size of a response head.
const MAX_HEAD_BYTES: usize = 256 * 1024;
/// Heads up to this size are parsed again with each piece that arrives.
const SHORT_HEAD_BYTES: usize = 1024;

/// Finds the end of each response. Buffers a head only while it is incomplete, and never a body.
#[derive(Debug)]
pub struct ResponseParser {
    head_only: bool,
    state: State,
    /// Bytes of the response consumed so far, including interim responses.
    bytes: u64,
    /// The received part of a head that came in pieces.
    partial_head: Vec<u8>,
    recent_head: RecentHead,
}

#[derive(Debug)]
enum State {
    Head,
    Body { head: Head, body: Body },
}

impl ResponseParser {
    /// `head_only`: responses have no body because the method is `HEAD`.
    #[must_use]
    pub fn new(head_only: bool) -> Self {
        Self {
            head_only,
            state: State::Head,
            bytes: 0,
            partial_head: Vec::new(),
            recent_head: RecentHead::default(),
        }
    }

    /// Resets the parser for the next response. `head_only`: it has no body because the method is `HEAD`.
    pub fn begin(&mut self, head_only: bool) {
        self.head_only = head_only;
        self.reset();
    }

    fn reset(&mut self) {
        self.state = State::Head;
        self.bytes = 0;
        self.partial_head.clear();
    }

    /// Consumes bytes up to the end of the response; returns how many were consumed. Interim responses
    /// (status 1xx) are skipped.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an HTTP/1.1 response, or if its head exceeds 256 KiB.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(usize, Parsed), ProtocolError> {
        let before = self.bytes;
        let (taken, head) = self.receive_up_to_end(bytes)?;
        self.bytes = before + taken as u64;
        Ok((taken, head.map_or(Parsed::Incomplete, |head| self.response_ended(head))))
    }

    /// Returns the head of the response that ended, if one did.
    fn receive_up_to_end(&mut self, bytes: &[u8]) -> Result<(usize, Option<Head>), ProtocolError> {
        let mut taken = 0;
        loop {
            match &mut self.state {
                State::Head => {
                    let Some((step, head)) = self.receive_head(&bytes[taken..])? else {
                        return Ok((bytes.len(), None));
                    };
                    taken += step;
                    match head.status {
                        // 101 would switch protocols, which was not requested.
                        101 => return Err(ProtocolError(ErrorKind::MalformedResponse)),
                        100..200 => continue,
                        _ if head.framing == Framing::Length(0) => return Ok((taken, Some(head))),
                        _ => self.state = State::Body { head, body: Body::new(head.framing) },
                    }
                }
                State::Body { head, body } => {
                    let (step, ended) = body.receive(&bytes[taken..])?;
                    taken += step;
                    return Ok((taken, ended.then_some(*head)));
                }
            }
        }
    }

    /// The connection has ended. This completes a response framed by the end of the connection, and is fine
    /// between responses.
    ///
    /// # Errors
    /// Returns an error if a response has begun and is incomplete.
    pub fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        let outcome = match &self.state {
            State::Body { head, body: Body::UntilEnd } => Ok(Some(ResponseEnd {
                stream: 0,
                status: head.status,
                bytes: self.bytes,
                reusable: false,
                grpc: None,
            })),
            State::Head if self.partial_head.is_empty() => Ok(None),
            State::Head | State::Body { .. } => Err(ProtocolError(ErrorKind::Closed)),
        };
        self.reset();
        outcome
    }

    /// Returns the head once it is complete, and how many of `bytes` belong to it.
    fn receive_head(&mut self, bytes: &[u8]) -> Result<Option<(usize, Head)>, ProtocolError> {
        if self.partial_head.is_empty() {
            if let Some(same) = self.recent_head.find(bytes, self.head_only) {
                return Ok(Some(same));
            }
            if let Some((length, head)) = head::parse(bytes, self.head_only)? {
                self.recent_head.keep(&bytes[..length], head, self.head_only);
                return Ok(Some((length, head)));
            }
            self.keep(bytes)?;
            return Ok(None);
        }
        let before = self.partial_head.len();
        self.keep(bytes)?;
        // A long head in small pieces would be parsed again for each: wait for the blank line at its end. A
        // short one is parsed each time, so that garbage is reported at once.
        if self.partial_head.len() > SHORT_HEAD_BYTES && !ends_head(&self.partial_head, before) {
            return Ok(None);
        }
        let Some((length, head)) = head::parse(&self.partial_head, self.head_only)? else { return Ok(None) };
        let step = length.saturating_sub(before);
        self.partial_head.clear();
        Ok(Some((step, head)))
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        if self.partial_head.len() + bytes.len() > MAX_HEAD_BYTES {
            return Err(ProtocolError(ErrorKind::HeadTooLarge));
        }
        self.partial_head.extend_from_slice(bytes);
        Ok(())
    }

    fn response_ended(&mut self, head: Head) -> Parsed {
        let bytes = self.bytes;
        self.reset();
        Parsed::Response(ResponseEnd {
            stream: 0,
            status: head.status,
            bytes,
            reusable: head.keep_alive,
            grpc: None,
        })
    }
}

/// True if a blank line ends at or after `from`.
fn ends_head(bytes: &[u8], from: usize) -> bool {
    let tail = &bytes[from.saturating_sub(2)..];
    tail.windows(2).any(|pair| pair == b"\n\n") || tail.windows(3).any(|three| three == b"\n\r\n")
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
