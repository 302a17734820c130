//! Consecutive responses on one connection, from bytes split at any positions.

use super::super::{Parsed, ProtocolError, ResponseEnd};
use crate::error::ErrorKind;
use ::http1::{BodyError, Invalid, Response};

/// Maximum size of a response head.
const MAX_HEAD_BYTES: usize = 256 * 1024;

/// Finds the end of each response.
#[derive(Debug)]
pub struct ResponseParser(::http1::ResponseParser);

impl ResponseParser {
    /// `head_only`: responses have no body because the method is `HEAD`.
    #[must_use]
    pub fn new(head_only: bool) -> Self {
        let mut parser = Self(::http1::ResponseParser::for_many(MAX_HEAD_BYTES));
        parser.begin(head_only);
        parser
    }

    /// Resets the parser for the next response. `head_only`: it has no body because the method is `HEAD`.
    pub fn begin(&mut self, head_only: bool) {
        self.0.begin(head_only);
    }

    /// Consumes bytes up to the end of the response; returns how many were consumed. Interim responses
    /// (status 1xx) are skipped.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an HTTP/1.1 response, or if its head exceeds 256 KiB.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(usize, Parsed), ProtocolError> {
        let (taken, response) = self.0.receive(bytes).map_err(protocol_error)?;
        Ok((taken, response.map_or(Parsed::Incomplete, |response| Parsed::Response(end_of(response)))))
    }

    /// The connection has ended. This completes a response framed by the end of the connection, and is fine
    /// between responses.
    ///
    /// # Errors
    /// Returns an error if a response has begun and is incomplete.
    pub fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        Ok(self.0.end().map_err(protocol_error)?.map(end_of))
    }
}

fn end_of(Response { status, bytes, reusable }: Response) -> ResponseEnd {
    ResponseEnd { stream: 0, status, bytes, reusable, grpc: None }
}

fn protocol_error(invalid: Invalid) -> ProtocolError {
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
