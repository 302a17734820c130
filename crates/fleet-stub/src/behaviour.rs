//! How a stub treats a connection: correctly, or with one violation.

use std::time::Duration;

/// Behavior on a connection and its streams.
#[derive(Clone, Debug, PartialEq)]
pub enum Behaviour {
    /// Correct behavior of a control plane.
    Correct,
    /// Responses have an empty nonce.
    EmptyNonce,
    /// All responses have the same nonce.
    RepeatedNonce,
    /// The first requested endpoints resource never arrives.
    WithheldResource,
    /// A response of an unknown type is sent with the clusters.
    UnknownType,
    /// Response bodies are not valid protobuf.
    UndecodableBody,
    /// Clusters include a value that is not valid protobuf.
    UndecodableResource,
    /// Endpoints include some that were not requested.
    UnrequestedResource,
    /// Messages are flagged as compressed, on a stream without compression.
    CompressedFlag,
    /// Clusters include an additional one of this many bytes: valid, but large.
    LargeResource(u32),
    /// Each response is replaced by a message of this many zero bytes.
    HugeMessage(u32),
    /// Streams end immediately with this gRPC status.
    Status(u32, &'static str),
    /// The response is not gRPC, but this HTTP status with a page.
    HttpStatus(u16),
    /// Streams are correct, and reset at this age.
    StreamReset(Duration),
    /// Streams are correct, and end normally at this age, as istiod's do after 30 minutes.
    StreamEnd(Duration),
    /// Requests get no response.
    SilentStream,
    /// The connection is correct, and closed with GOAWAY at this age.
    GoAway(Duration),
    /// The connection is correct, and closed after this many bytes were written.
    CloseAfterBytes(usize),
    /// The connection is closed as soon as it is accepted.
    CloseAtOnce,
    /// The connection is accepted, and nothing more.
    SilentConnection,
    /// The server speaks HTTP/1.1.
    Http1,
    /// The server sends frames without end and does not read the answers to them.
    Flood(Flood),
}

/// Frames that a flood consists of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Flood {
    /// PING frames.
    Pings,
    /// Empty SETTINGS frames.
    Settings,
    /// Empty CONTINUATION frames of one header block.
    Continuations,
    /// PING frames, with an empty message of the response after each thousand.
    PingsBetweenMessages,
}
