//! How a stub treats a connection: correctly, or with one violation.

use std::time::Duration;

/// Treatment of a connection and its streams.
#[derive(Clone, Debug, PartialEq)]
pub enum Behaviour {
    /// As a control plane should.
    Correct,
    /// Responses have an empty nonce.
    EmptyNonce,
    /// All responses have the same nonce.
    RepeatedNonce,
    /// The first of the endpoints that are asked for never comes.
    WithheldResource,
    /// A response of a type that does not exist comes with the clusters.
    UnknownType,
    /// Bodies of responses are not protobuf.
    UndecodableBody,
    /// Clusters come with a value that is not protobuf.
    UndecodableResource,
    /// Endpoints come with some that nobody asked for.
    UnrequestedResource,
    /// Messages are marked as compressed, on a stream without compression.
    CompressedFlag,
    /// Clusters come with one more, of this many bytes: correct, but large.
    LargeResource(u32),
    /// A message of this many zero bytes in place of each response.
    HugeMessage(u32),
    /// Streams end at once with this gRPC status.
    Status(u32, &'static str),
    /// The response is not gRPC: this HTTP status, with a page.
    HttpStatus(u16),
    /// Streams are correct and reset when they are this old.
    StreamReset(Duration),
    /// Streams are correct and end well when they are this old, as istiod's do after 30 minutes.
    StreamEnd(Duration),
    /// Requests are not answered.
    SilentStream,
    /// The connection is correct and shut down with GOAWAY when it is this old.
    GoAway(Duration),
    /// The connection is correct and closed when this many bytes were written.
    CloseAfterBytes(usize),
    /// The connection is closed as soon as it is accepted.
    CloseAtOnce,
    /// The connection is accepted, and that is all.
    SilentConnection,
    /// The connection speaks HTTP/1.1.
    Http1,
}
