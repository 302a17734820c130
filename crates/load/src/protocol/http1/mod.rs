//! HTTP/1.1 with keep-alive, one request at a time per connection (RFC 9112).

mod request;
mod response;

pub(crate) use request::Http1Request;
pub use response::ResponseParser;
pub(super) use response::protocol_error;

use super::{Codec, KeptResponse, Parsed, ProtocolError, ResponseEnd};
use crate::error::ErrorKind;
use crate::target::Values;

/// The HTTP/1.1 state of one connection.
pub(crate) struct Http1 {
    parser: ResponseParser,
    /// A request is unanswered.
    awaits: bool,
}

impl Http1 {
    pub(crate) fn new() -> Self {
        Self { parser: ResponseParser::new(false), awaits: false }
    }
}

impl Codec for Http1 {
    type Request = Http1Request;
    const MULTIPLEXED: bool = false;

    fn streams(&self) -> usize {
        1
    }

    fn can_send(&self) -> bool {
        !self.awaits
    }

    fn open(&mut self, _request: &Http1Request, _out: &mut Vec<u8>) {
        self.awaits = false;
    }

    fn begin(&mut self, request: &Http1Request, values: Values<'_>, out: &mut Vec<u8>) -> usize {
        self.awaits = true;
        self.parser.begin(request.head_only);
        self.parser.keep(request.keep);
        request.write(values, out);
        0
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError> {
        if !self.awaits {
            // Unsolicited bytes: nothing that follows on this connection can be trusted.
            return Err(ProtocolError(ErrorKind::SurplusBytes));
        }
        let (taken, parsed) = self.parser.receive(bytes)?;
        self.awaits = !matches!(parsed, Parsed::Response(_));
        Ok((taken, parsed))
    }

    fn take_kept(&mut self, _stream: usize) -> Option<Box<KeptResponse>> {
        self.parser.take_kept()
    }

    fn cancel(&mut self, _stream: usize, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        self.parser.end()
    }
}
