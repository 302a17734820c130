//! gRPC over HTTP/2 (grpc/grpc, `doc/PROTOCOL-HTTP2.md`): what a call sends, and what its response must be.
//!
//! A call is one request and ends with its trailers. [`GrpcCall`] are its messages, framed once before the run; HTTP/2's
//! streams send them, the next one of a dialogue when the answer to the last has come. [`GrpcResponse`] counts the messages
//! of a response and forgets them; HTTP/2 shows it the fields and the content that it receives.
//!
//! Left out: compression (none is asked for, compressed messages are counted like others), decoding of messages.

mod call;
mod frames;
mod response;

pub use call::{CallError, GrpcCall};
pub(crate) use call::{OutgoingMessages, headers};
pub use response::GrpcEnd;
pub(crate) use response::{GrpcFields, GrpcResponse, STATUSES};
