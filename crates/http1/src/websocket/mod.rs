//! WebSocket without I/O (RFC 6455): its handshake over HTTP/1.1, and frames in any pieces. Extensions are neither offered nor accepted.
//!
//! Text is not checked to be UTF-8: messages are carried, not read.

mod frames;
mod handshake;

pub use frames::{
    Fault, FrameReader, MAX_MESSAGE_BYTES, Opcode, Received, Sender, apply_mask, write_close, write_frame,
    write_header,
};
pub use handshake::{accept_of, is_accepted, new_key, requested_key};
