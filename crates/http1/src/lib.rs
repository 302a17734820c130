//! HTTP/1.1 without I/O (RFC 9112), as far as the load engine and the synthetic service have it in common: heads, the end
//! of bodies, and responses in any pieces. `httparse` finds the parts of a head; this crate interprets them.
//!
//! Bodies are not kept: their content is passed on in pieces to those who want it. The rules for requests are strict:
//! conflicting framings and malformed chunks are rejected, never guessed, because proxies and servers that guess differently
//! are how requests are smuggled.
//! A response is read as leniently as RFC 9110 and 9112 allow, because the client only measures it.
//!
//! Read `request.rs` and `response.rs` first. Messages are written by those who send them. `websocket/` has the protocol to which a
//! connection may be switched.

mod body;
mod fields;
mod request;
mod response;
pub mod websocket;

pub use body::{Body, BodyError};
pub use fields::{EVENT_STREAM, is_event_stream};
pub use request::{Framing, MAX_HEAD_BYTES, Rejection, parse_request};
pub use response::{Invalid, Response, ResponseParser};
