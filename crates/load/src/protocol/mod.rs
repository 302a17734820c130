//! What bytes mean: how a request goes out and when its response is whole.
//!
//! A [`Codec`] holds one connection's state and does no I/O: bytes come in as they were received, and what is to be sent is
//! appended to a buffer. Each request gets a stream number, under which its response is reported: a protocol of one request
//! at a time has the one stream 0, a multiplexed one as many as may be unanswered at once.

pub(crate) mod grpc;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod raw;

use crate::error::ErrorKind;
use grpc::GrpcEnd;

/// One connection's side of a protocol.
pub(crate) trait Codec {
    /// A request of the run as this protocol needs it, made ready once before the run.
    type Request;

    /// Several requests may be unanswered at once. What is sent for those that are due together is then sent as one.
    const MULTIPLEXED: bool;

    /// Stream numbers are below this: the most requests that may ever be unanswered at once.
    fn streams(&self) -> usize;

    /// Whether another request may begin now, as far as the protocol and the peer are concerned.
    fn has_room(&self) -> bool;

    /// A new connection is open: forgets everything of the one before; appends what is to be sent first.
    fn open(&mut self, out: &mut Vec<u8>);

    /// Begins a request, for which there must be room: appends its bytes, with `numbers` in the places of its text that want
    /// one; returns its stream.
    fn begin(&mut self, request: &Self::Request, numbers: &[u64], out: &mut Vec<u8>) -> usize;

    /// Bytes of a request that has begun which wait until the peer has room for them.
    fn held_back(&self, _stream: usize) -> usize {
        0
    }

    /// Messages of a request that has begun, and may have ended since, that were sent: 0 where requests have none.
    fn messages_sent(&self, _stream: usize) -> u64 {
        0
    }

    /// Takes bytes from the connection and says how far they brought it; to be called again with the rest of them, where
    /// there is one. Appends what is to be sent in turn.
    ///
    /// # Errors
    /// Where they make no sense: the connection is of no more use.
    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError>;

    /// Gives up the response of a stream; appends what is to be sent to say so. `false` where the connection cannot go on
    /// without that response.
    fn cancel(&mut self, stream: usize, out: &mut Vec<u8>) -> bool;

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
    /// So many messages of the response of this stream are whole, which has more of them, or may have.
    Messages(usize, u32),
    /// The request of this stream has failed; the connection goes on.
    Failed(usize, ErrorKind),
    /// There may be room for more requests than before.
    Room,
    /// The peer takes no more requests on this connection; those unanswered may still be answered.
    Closing,
}

/// A response that is whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseEnd {
    /// The stream that it answers.
    pub stream: usize,
    /// Its status code.
    pub status: u16,
    /// Its bytes on the connection, head included.
    pub bytes: u64,
    /// The connection may carry another request.
    pub reusable: bool,
    /// How it ended as a gRPC call, if it was one.
    pub grpc: Option<GrpcEnd>,
}

/// Bytes that make no sense.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProtocolError(
    /// The kind under which it is counted.
    pub ErrorKind,
);
