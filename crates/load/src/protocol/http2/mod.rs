//! HTTP/2 (RFC 9113) for a client that sends many concurrent requests on a connection and discards the
//! content.
//!
//! Read `connection` first: the state and the sending side; then `receive`: how each frame of the peer is
//! handled. `input` splits bytes into frames and `streams` tracks the open ones. `response` validates
//! responses, and `encoder` compresses the fields of requests. Crate `http2` has frames in wire format, and decodes fields.
//! `settings` holds what both sides announce.
//!
//! - The first request waits for the peer's SETTINGS, so that no more start than it accepts.
//! - Content is counted and discarded. The receive window is 16 MiB per stream and 1 GiB per connection, and
//!   is replenished when half is used: windows never stall a response, and few WINDOW_UPDATE frames are
//!   needed.
//! - A body is sent as far as the peer's windows allow; the rest follows when they open, the longest waiting
//!   first.
//! - Stream errors fail only their own request, connection errors fail all.
//!
//! Not supported: server push (refused), priorities (ignored), upgrades from HTTP/1.1.

mod connection;
mod encoder;
mod input;
mod receive;
mod request;
mod response;
mod settings;
mod streams;
mod violation;

pub use connection::Http2Connection;
pub use request::{CommonFields, Http2Request};

use super::{Codec, KeptResponse, Parsed, ProtocolError, ResponseEnd};
use crate::target::Values;

impl Codec for Http2Connection {
    type Request = Http2Request;
    const MULTIPLEXED: bool = true;

    fn streams(&self) -> usize {
        self.most_streams()
    }

    fn can_send(&self) -> bool {
        self.can_send()
    }

    fn peer_limit(&self) -> Option<usize> {
        self.peer_limit()
    }

    fn open(&mut self, _request: &Http2Request, out: &mut Vec<u8>) {
        self.open(out);
    }

    fn begin(&mut self, request: &Http2Request, values: Values<'_>, out: &mut Vec<u8>) -> usize {
        self.begin(request, values, out)
    }

    fn blocked_bytes(&self, stream: usize) -> usize {
        self.blocked_bytes(stream)
    }

    fn messages_sent(&self, stream: usize) -> u64 {
        self.messages_sent(stream)
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError> {
        self.receive(bytes, out)
    }

    fn take_kept(&mut self, stream: usize) -> Option<Box<KeptResponse>> {
        self.streams.take_kept(stream)
    }

    fn cancel(&mut self, stream: usize, out: &mut Vec<u8>) -> bool {
        self.cancel(stream, out);
        true
    }

    fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        self.end()
    }
}

#[cfg(test)]
mod tests;
