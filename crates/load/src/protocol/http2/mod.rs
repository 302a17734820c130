//! HTTP/2 (RFC 9113) as a client that asks much and keeps nothing: many requests at once on a connection.
//!
//! Read `connection` first: the state and what this side sends; then `receive`: what each frame of the peer means. `input` makes
//! frames of bytes, `streams` knows which are open, `response` decides whether what came is a response, `encoder` compresses
//! requests' fields (crate `hpack` reads responses'), `settings` is what both sides announce.
//!
//! - The first request waits for the peer's settings, so that no more begin than it takes.
//! - Content is counted and forgotten. The peer has room for 16 MiB on each stream and 1 GiB on the connection, and is
//!   told of more when half is used: windows hold no response up, and cost no frame for each.
//! - A body goes out as far as the peer has room; the rest follows when there is more, the longest waiting first.
//! - Errors of a stream end its request alone, errors of the connection all.
//!
//! Left out: pushed responses (refused), priorities (ignored), upgrades from HTTP/1.1.

mod connection;
mod encoder;
mod frame;
mod input;
mod receive;
mod request;
mod response;
mod settings;
mod streams;
mod violation;

pub use connection::Http2Connection;
pub use request::{CommonFields, Http2Request};
use violation::ErrorCode;

use super::{Codec, Parsed, ProtocolError, ResponseEnd};

impl Codec for Http2Connection {
    type Request = Http2Request;
    const MULTIPLEXED: bool = true;

    fn streams(&self) -> usize {
        self.most_streams()
    }

    fn has_room(&self) -> bool {
        self.has_room()
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        self.open(out);
    }

    fn begin(&mut self, request: &Http2Request, numbers: &[u64], out: &mut Vec<u8>) -> usize {
        self.begin(request, numbers, out)
    }

    fn held_back(&self, stream: usize) -> usize {
        self.held_back(stream)
    }

    fn messages_sent(&self, stream: usize) -> u64 {
        self.messages_sent(stream)
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError> {
        self.receive(bytes, out)
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
