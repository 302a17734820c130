//! gRPC over HTTP/2 (grpc/grpc, `doc/PROTOCOL-HTTP2.md`): what a call sends, and what its response must be.
//!
//! A call is one request and ends with its trailers. [`GrpcCall`] holds its messages, framed once before the
//! run. HTTP/2's streams send them; in a dialogue each is sent once the previous one is answered.
//! [`GrpcResponse`] counts the messages of a response and discards them; HTTP/2 passes it the fields and the
//! content that it receives.
//!
//! Not supported: compression (none is requested; compressed messages count like others) and decoding of
//! messages.

mod call;
mod frames;
mod response;

pub use call::{CallError, GrpcCall};
pub(crate) use call::{OutgoingMessages, headers};
pub use response::GrpcEnd;
pub(crate) use response::{GrpcFields, GrpcResponse, STATUSES};
