//! HTTP/1.1 with keep-alive, one request at a time on a connection (RFC 9112).

mod body;
mod head;
mod response;

pub use response::ResponseParser;

use super::{Codec, Parsed, ProtocolError, ResponseEnd};

/// One connection's side of HTTP/1.1.
pub(crate) struct Http1 {
    parser: ResponseParser,
}

impl Http1 {
    /// `head_only`: responses have no body, since the method is `HEAD`.
    pub(crate) fn new(head_only: bool) -> Self {
        Self { parser: ResponseParser::new(head_only) }
    }
}

impl Codec for Http1 {
    fn capacity(&self) -> usize {
        1
    }

    fn reset(&mut self) {
        self.parser.reset();
    }

    fn begin<'a>(&mut self, request: &'a [u8]) -> (usize, &'a [u8]) {
        self.parser.reset();
        (0, request)
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(usize, Parsed), ProtocolError> {
        self.parser.receive(bytes)
    }

    fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        self.parser.end()
    }
}
