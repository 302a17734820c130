//! What bytes mean: how a request is sent and when its response is complete.
//!
//! A [`Codec`] holds one connection's state and does no I/O: it consumes received bytes and appends output to
//! a buffer. Each request gets a stream number, under which its response is reported. A protocol with one
//! request at a time has only stream 0; a multiplexed one has as many streams as there may be unanswered
//! requests.

pub(crate) mod events;
pub(crate) mod grpc;
pub(crate) mod http1;
pub(crate) mod http2;
mod kept;
pub(crate) mod raw;
pub(crate) mod websocket;

use crate::error::ErrorKind;
use crate::target::Values;
use grpc::GrpcEnd;

pub(crate) use kept::{Keep, KeptField, KeptResponse};

/// The protocol state of one connection.
pub(crate) trait Codec {
    /// A request of the run in the form of this protocol, prepared once before the run.
    type Request;

    /// True if several requests may be unanswered at once. Requests due together are then sent as one write.
    const MULTIPLEXED: bool;
    /// Failure of a peer that is connected, but does not say within the timeout that it accepts requests.
    const NOT_GREETED: ErrorKind = ErrorKind::SettingsTimeout;
    /// Failure of a peer that requires answers without reading them.
    const FLOODED: ErrorKind = ErrorKind::Http2Flood;

    /// Exclusive upper bound of stream numbers: the maximum number of unanswered requests.
    fn streams(&self) -> usize;

    /// True if the protocol and the peer allow another request now.
    fn can_send(&self) -> bool;

    /// Requests that the peer allows at once on this connection, if fewer than [`Self::streams`].
    fn peer_limit(&self) -> Option<usize> {
        None
    }

    /// Resets the state for a new connection, which will carry requests such as this one; appends the protocol's opening bytes.
    fn open(&mut self, request: &Self::Request, out: &mut Vec<u8>);

    /// Starts a request, for which there must be room: appends its bytes, with `values` in its placeholders,
    /// and returns its stream.
    fn begin(&mut self, request: &Self::Request, values: Values<'_>, out: &mut Vec<u8>) -> usize;

    /// Bytes of a started request that wait for the peer's flow-control window.
    fn blocked_bytes(&self, _stream: usize) -> usize {
        0
    }

    /// Messages sent by a started request, which may have ended since; 0 if requests have none.
    fn messages_sent(&self, _stream: usize) -> u64 {
        0
    }

    /// Consumes bytes up to the next result and returns it. Call it again with the remaining bytes. Appends
    /// replies to `out`. Fails if the bytes are invalid: the connection is then unusable.
    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError>;

    /// Takes what was kept of the response of this stream, which has just ended; `None` if its request keeps nothing.
    fn take_kept(&mut self, _stream: usize) -> Option<Box<KeptResponse>> {
        None
    }

    /// Cancels the response of a stream; appends the bytes that announce it. Returns false if the connection
    /// cannot continue without that response.
    fn cancel(&mut self, stream: usize, out: &mut Vec<u8>) -> bool;

    /// This side closes the connection: appends the bytes that announce it.
    fn close(&mut self, _out: &mut Vec<u8>) {}

    /// The peer has closed its side, which completes a response framed by the end of the connection. Fails if
    /// a response is missing or incomplete.
    fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError>;
}

/// Result of consuming received bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Parsed {
    /// More bytes are needed; all are consumed.
    Incomplete,
    /// A response is complete.
    Response(ResponseEnd),
    /// The response of this stream has begun, and is a stream of events or of pushed messages.
    EventStream(usize),
    /// This many messages (second field) of this stream's response are complete, or events with content; more may follow.
    Messages(usize, u32),
    /// The request of this stream has failed; the connection continues.
    Failed(usize, ErrorKind),
    /// There may be room for more requests than before.
    Room,
    /// The peer accepts no more requests on this connection; unanswered ones may still complete.
    Closing,
}

/// A complete response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseEnd {
    /// Its stream.
    pub stream: usize,
    /// Its status code.
    pub status: u16,
    /// Its size on the connection in bytes, including the head.
    pub bytes: u64,
    /// True if the connection may carry another request.
    pub reusable: bool,
    /// How it ended as a gRPC call, if it was one.
    pub grpc: Option<GrpcEnd>,
}

/// Bytes that violate the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProtocolError(
    /// The kind under which it is counted.
    pub ErrorKind,
);
