//! HTTP/3 (RFC 9114) over QUIC (RFC 9000), as far as the load engine and the synthetic service have it in common.
//!
//! [`quic`] moves the bytes of streams: a socket and its connections, on `quinn-proto`, without a runtime. The rest does no I/O:
//! frames in wire format ([`frame`]), field sections ([`qpack`]), the streams that a peer opens beside requests ([`control`]), and
//! error codes. Each side has its own requests and responses.
//!
//! Not supported: a dynamic table of QPACK (both sides announce none), server push, datagrams.

pub mod control;
pub mod frame;
pub mod qpack;
pub mod quic;
pub mod varint;

mod error_code;

pub use error_code::ErrorCode;

/// The protocol's name in TLS handshakes (ALPN).
pub const ALPN: &[u8] = b"h3";
