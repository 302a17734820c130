//! What bytes mean: how a request goes out and when its response is whole.
//!
//! A [`Codec`] holds one connection's state and does no I/O. Each request sent gets a stream number, under which its
//! response is reported: HTTP/1.1 has the one stream 0, a multiplexed protocol has as many as its capacity.

pub(crate) mod http1;

use crate::error::ErrorKind;

/// One connection's side of a protocol.
pub(crate) trait Codec {
    /// How many requests may be unanswered at once.
    fn capacity(&self) -> usize;

    /// Forgets everything: the connection is new.
    fn reset(&mut self);

    /// The bytes to send for a request, and its stream. Called only while fewer than `capacity` requests are unanswered.
    fn begin<'a>(&mut self, request: &'a [u8]) -> (usize, &'a [u8]);

    /// Takes bytes from the connection and says how far they brought it; to be called again with the rest of them after
    /// a [`Parsed::Response`].
    ///
    /// # Errors
    /// Where they make no sense: the connection is of no more use.
    fn receive(&mut self, bytes: &[u8]) -> Result<(usize, Parsed), ProtocolError>;

    /// The peer will send no more. A response whose end is the connection's end is whole now.
    ///
    /// # Errors
    /// Where a response is missing or cut short.
    fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError>;
}

/// How far received bytes brought a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Parsed {
    /// More is needed; all bytes are taken.
    Incomplete,
    /// A response is whole.
    Response(ResponseEnd),
}

/// A response that is whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseEnd {
    /// The stream that it answers.
    pub stream: usize,
    /// Its status code.
    pub status: u16,
    /// The connection may carry another request.
    pub reusable: bool,
}

/// Bytes that make no sense.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProtocolError(
    /// The kind under which it is counted.
    pub ErrorKind,
);
