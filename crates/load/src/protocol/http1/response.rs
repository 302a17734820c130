//! Consecutive responses on one connection, from bytes split at any positions.

use super::super::events::EventScanner;
use super::super::{Keep, KeptResponse, Parsed, ProtocolError, ResponseEnd};
use crate::error::ErrorKind;
use ::http1::{BodyError, Invalid, Response};

/// Maximum size of a response head.
const MAX_HEAD_BYTES: usize = 256 * 1024;

/// Finds the end of each response, and the events of those that are streams of events.
#[derive(Debug)]
pub struct ResponseParser {
    parser: ::http1::ResponseParser,
    events: EventScanner,
    /// End of the response whose last events were just reported.
    ended: Option<Result<ResponseEnd, ProtocolError>>,
    /// Present for a response of which anything is kept.
    kept: Option<Box<KeptResponse>>,
}

impl ResponseParser {
    /// `head_only`: responses have no body because the method is `HEAD`.
    #[must_use]
    pub fn new(head_only: bool) -> Self {
        let parser = ::http1::ResponseParser::for_many(MAX_HEAD_BYTES);
        let mut parser = Self { parser, events: EventScanner::default(), ended: None, kept: None };
        parser.begin(head_only);
        parser
    }

    /// Resets the parser for the next response. `head_only`: it has no body because the method is `HEAD`.
    pub fn begin(&mut self, head_only: bool) {
        self.parser.begin(head_only);
        (self.ended, self.kept) = (None, None);
    }

    /// Keeps these parts of the response that was begun.
    pub(crate) fn keep(&mut self, keep: Keep) {
        self.kept = keep.begin();
        if self.kept.is_some() {
            self.parser.keep();
        }
    }

    /// Takes what was kept of the response that has ended.
    pub(crate) fn take_kept(&mut self) -> Option<Box<KeptResponse>> {
        let mut kept = self.kept.take()?;
        self.parser.kept_fields(|name, value| kept.field(name, value));
        Some(kept)
    }

    /// Consumes bytes up to the end of the response, or to the next that is known of a stream of events; returns how many
    /// were consumed. Interim responses (status 1xx) are skipped.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an HTTP/1.1 response, if its head exceeds 256 KiB, or if it ends within an event.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(usize, Parsed), ProtocolError> {
        if let Some(ended) = self.ended.take() {
            // The last byte of the response is consumed with its end.
            return ended.map(|end| (1.min(bytes.len()), Parsed::Response(end)));
        }
        let (was_stream, events, mut messages) = (self.parser.is_event_stream(), &mut self.events, 0);
        let kept = &mut self.kept;
        let read = self.parser.receive_part(bytes, &mut |content| {
            if was_stream {
                messages += events.receive(content);
            }
            if let Some(kept) = kept {
                kept.content(content);
            }
        });
        let (taken, response) = read.map_err(protocol_error)?;
        let Some(response) = response else {
            let parsed = match (was_stream, messages) {
                (false, _) if self.parser.is_event_stream() => {
                    self.events.begin();
                    Parsed::EventStream(0)
                }
                (_, 0) => Parsed::Incomplete,
                (_, messages) => Parsed::Messages(0, messages),
            };
            return Ok((taken, parsed));
        };
        let ended = if was_stream { self.events.ended(true).map_err(ProtocolError) } else { Ok(()) };
        let ended = ended.map(|()| end_of(response));
        if messages > 0 {
            self.ended = Some(ended);
            return Ok((taken - 1, Parsed::Messages(0, messages)));
        }
        Ok((taken, Parsed::Response(ended?)))
    }

    /// The connection has ended. This completes a response framed by the end of the connection, and is fine
    /// between responses.
    ///
    /// # Errors
    /// Returns an error if a response has begun and is incomplete.
    pub fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        let is_stream = self.parser.is_event_stream();
        let end = self.parser.end().map_err(protocol_error)?;
        if is_stream {
            self.events.ended(false).map_err(ProtocolError)?;
        }
        Ok(end.map(end_of))
    }
}

fn end_of(Response { status, bytes, reusable }: Response) -> ResponseEnd {
    ResponseEnd { stream: 0, status, bytes, reusable, grpc: None }
}

pub(in crate::protocol) fn protocol_error(invalid: Invalid) -> ProtocolError {
    ProtocolError(match invalid {
        Invalid::Truncated => ErrorKind::Closed,
        Invalid::Tls => ErrorKind::TlsResponse,
        Invalid::HeadTooLarge(_) | Invalid::TooManyHeaders | Invalid::Body(BodyError::Trailers) => {
            ErrorKind::HeadTooLarge
        }
        Invalid::Syntax(_) | Invalid::Fields(_) | Invalid::Status | Invalid::Body(BodyError::Chunks) => {
            ErrorKind::MalformedResponse
        }
    })
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
