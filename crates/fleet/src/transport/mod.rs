//! One connection to a control plane: TCP with receive timestamps, TLS, HTTP/2 with one stream, gRPC framing.
//!
//! Read [`link`] first: it moves bytes between a socket and the layers above, which do no I/O. Bytes are read
//! into a buffer of the thread, decrypted in place and passed on in chunks: a settled connection holds no buffer.
//!
//! The HTTP/2 implementation is custom: the `h2` crate keeps over 50 KiB per connection
//! (docs/decisions/0018-connections-of-a-fleet.md).

mod ending;
mod grpc;
mod http2;
mod link;
mod receive;
mod tls;
mod turns;

pub(crate) use ending::{Ending, EndingKind};
pub(crate) use grpc::{Deframer, Piece, frame_message};
pub use http2::check_connection;
pub(crate) use http2::{Event, RequestHead};
pub(crate) use link::{Link, READ_BUFFER_BYTES, Route};
pub(crate) use receive::{Stamp, Stamping, check_timestamps};
pub(crate) use tls::{client_config, client_config_with_identity};
pub(crate) use turns::wait_ended;
