//! HTTP/2 (RFC 9113), as far as the load engine and the simulated proxies have it in common: frames in wire format,
//! settings, error codes, the bound on answered frames, and header compression.
//!
//! Each of them has its own connection. The load engine's has many streams and discards the content; a
//! simulated proxy's has one stream, and thousands of connections share a thread.

pub mod frame;
pub mod hpack;
pub mod settings;

mod answers;
mod error_code;
mod fields;

pub use answers::{Answers, Flood, MAX_ANSWERS};
pub use error_code::ErrorCode;
pub use fields::{FragmentError, fragment, push_fields};
