//! Bytes of a server: its greeting, and responses with the fields that nginx sends.

use crate::contest::BODY_BYTES;
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
    /// A body.
    Plain,
    /// One gRPC message, and the status `OK` in trailers.
    Grpc,
}

/// Representation of header fields.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fields {
    /// Each enters the table of the connection anew, as from nginx, or as in the first response from any server.
    Added,
    /// Those of the response before, by their places in the table, as from Envoy, Go and the `h2` crate.
    Indexed,
}

/// Fields of a response and of its trailers.
type Heads = (Vec<(&'static str, &'static str)>, Vec<(&'static str, &'static str)>);

impl Kind {
    fn heads(self) -> Heads {
        let [server, date] = [("server", "nginx/1.22.1"), ("date", "Fri, 20 Nov 2026 11:00:00 GMT")];
        match self {
            Self::Plain => (
                vec![server, date, ("content-type", "application/octet-stream"), ("content-length", "1024")],
                Vec::new(),
            ),
            Self::Grpc => {
                (vec![server, date, ("content-type", "application/grpc")], vec![("grpc-status", "0")])
            }
        }
    }
}

/// Appends a server's settings, and a window that no run of requests with bodies uses up.
pub fn push_greeting(out: &mut Vec<u8>) {
    settings::push(&[(MAX_CONCURRENT_STREAMS, MAX_STREAMS)], out);
    push_window_update(0, MAX_31_BITS - frame::DEFAULT_WINDOW_BYTES, out);
}

/// Appends a response with [`BODY_BYTES`] of content, for a stream that [`set_stream`] sets.
pub fn push_response(kind: Kind, fields: Fields, out: &mut Vec<u8>) {
    let (head, trailers) = kind.heads();
    let content = [b'x'; BODY_BYTES];
    // Of all fields that the table holds, the last one has the first index after those of the static table.
    let last = static_table::ENTRIES + head.len() + trailers.len();
    let mut block = vec![STATUS_200];
    push_fields(&head, fields, last, &mut block);
    frame::push(kind::HEADERS, flag::END_HEADERS, 0, &block, out);
    match kind {
        Kind::Plain => frame::push(kind::DATA, flag::END_STREAM, 0, &content, out),
        Kind::Grpc => {
            let length = (content.len() as u32).to_be_bytes();
            frame::push(kind::DATA, 0, 0, &[&[0], &length[..], &content].concat(), out);
            block.clear();
            push_fields(&trailers, fields, last - head.len(), &mut block);
            frame::push(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 0, &block, out);
        }
    }
}

/// Appends fields, of which the first has the index `first` in the table if it is there already.
fn push_fields(fields: &[(&str, &str)], written: Fields, first: usize, out: &mut Vec<u8>) {
    for (place, (name, value)) in fields.iter().enumerate() {
        if written == Fields::Indexed {
            integer::encode(first - place, 7, 0x80, out);
            continue;
        }
        let named = static_table::find(name.as_bytes(), b"").1;
        integer::encode(named.unwrap_or(0), 6, 0x40, out);
        if named.is_none() {
            text::encode(name.as_bytes(), 7, 0, out);
        }
        text::encode(value.as_bytes(), 7, 0, out);
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
