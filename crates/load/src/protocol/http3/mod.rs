//! HTTP/3 (RFC 9114) for a client that sends many concurrent requests on a connection and discards the content.
//!
//! Its bytes are the records of [`crate::network`]'s QUIC: a request is sent on a stream that the network has opened ahead, and what comes
//! is told by stream. Read `connection` first; `request` has the fields, compressed once before the run, and `streams` the open ones.
//! Responses are validated by the code of HTTP/2. Crate `http3` has frames, field sections and the streams beside requests.
//!
//! - A request waits for no settings of the peer, as RFC 9114 allows: none of them limits it.
//! - Flow control and the limit of requests are the transport's.
//! - Errors of a stream fail only their own request, errors of the connection all.
//!
//! Not supported: gRPC, server push (there is no stream for it), priorities, a dynamic table of QPACK.

mod connection;
mod request;
mod streams;
#[cfg(test)]
mod tests;
mod violation;

pub use connection::Http3Connection;
pub use request::Http3Request;

use super::{Codec, KeptResponse, Parsed, ProtocolError, ResponseEnd};
use crate::error::ErrorKind;
use crate::network::record;
use crate::target::Values;

impl Codec for Http3Connection {
    type Request = Http3Request;
    const MULTIPLEXED: bool = true;
    const OVERHEAD_BYTES: usize = record::HEAD_BYTES;
    const FLOOD: ErrorKind = ErrorKind::Http3Flood;

    fn streams(&self) -> usize {
        self.most_streams()
    }

    fn can_send(&self) -> bool {
        self.can_send()
    }

    fn peer_limit(&self) -> Option<usize> {
        self.peer_limit()
    }

    fn open(&mut self, _request: &Http3Request, out: &mut Vec<u8>) {
        self.open(out);
    }

    fn begin(&mut self, request: &Http3Request, values: Values<'_>, out: &mut Vec<u8>) -> usize {
        self.begin(request, values, out)
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError> {
        self.receive(bytes, out)
    }

    fn take_kept(&mut self, stream: usize) -> Option<Box<KeptResponse>> {
        self.take_kept(stream)
    }

    fn cancel(&mut self, stream: usize, out: &mut Vec<u8>) -> bool {
        self.cancel(stream, out);
        true
    }

    fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        self.end()
    }
}
