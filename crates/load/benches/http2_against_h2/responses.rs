//! Bytes of a server: its greeting, and responses with the fields that nginx sends.

use http2::frame::{self, FrameHead, HEAD_BYTES, MAX_31_BITS, flag, kind, push_window_update};
use http2::hpack::{integer, static_table, text};
use http2::settings::{self, MAX_CONCURRENT_STREAMS};

/// Streams that the server allows at once, as nginx does by default.
const MAX_STREAMS: u32 = 128;
/// `:status: 200` of the static table.
const STATUS_200: u8 = 0x88;
/// Place of the stream in a frame header.
const STREAM_AT: usize = 5;

/// Kind of response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A body of so many bytes.
    Plain,
    /// One gRPC message, and the status `OK` in trailers.
    Grpc,
}

/// Appends a server's settings, and a window that no run of requests with bodies uses up.
pub fn push_greeting(out: &mut Vec<u8>) {
    settings::push(&[(MAX_CONCURRENT_STREAMS, MAX_STREAMS)], out);
    push_window_update(0, MAX_31_BITS - frame::DEFAULT_WINDOW_BYTES, out);
}

/// Appends a response on a stream.
pub fn push_response(of: Kind, content_bytes: usize, stream: u32, out: &mut Vec<u8>) {
    let mut fields = vec![STATUS_200];
    push_field(b"server", b"nginx/1.22.1", &mut fields);
    push_field(b"date", b"Fri, 20 Nov 2026 11:00:00 GMT", &mut fields);
    let content = vec![b'x'; content_bytes];
    match of {
        Kind::Plain => {
            push_field(b"content-type", b"application/octet-stream", &mut fields);
            push_field(b"content-length", content_bytes.to_string().as_bytes(), &mut fields);
            frame::push(kind::HEADERS, flag::END_HEADERS, stream, &fields, out);
            frame::push(kind::DATA, flag::END_STREAM, stream, &content, out);
        }
        Kind::Grpc => {
            push_field(b"content-type", b"application/grpc", &mut fields);
            frame::push(kind::HEADERS, flag::END_HEADERS, stream, &fields, out);
            let mut message = vec![0];
            message.extend_from_slice(&(content_bytes as u32).to_be_bytes());
            message.extend_from_slice(&content);
            frame::push(kind::DATA, 0, stream, &message, out);
            let mut trailers = Vec::new();
            push_field(b"grpc-status", b"0", &mut trailers);
            frame::push(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &trailers, out);
        }
    }
}

/// Sets the stream of every frame.
pub fn set_stream(frames: &mut [u8], stream: u32) {
    let mut start = 0;
    while let Some(head) = frames[start..].first_chunk::<HEAD_BYTES>() {
        let length = FrameHead::parse(head).length;
        frames[start + STREAM_AT..start + HEAD_BYTES].copy_from_slice(&stream.to_be_bytes());
        start += HEAD_BYTES + length;
    }
}

/// Appends a field that enters the table, as nginx writes each.
fn push_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let named = static_table::find(name, b"").1;
    integer::encode(named.unwrap_or(0), 6, 0x40, out);
    if named.is_none() {
        text::encode(name, out);
    }
    text::encode(value, out);
}
