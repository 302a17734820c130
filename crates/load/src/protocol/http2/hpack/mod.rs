//! Compression of header fields (HPACK, RFC 7541).
//!
//! [`Decoder`] reads the peer's field blocks and keeps the table that the peer fills; a reader says which fields it
//! wants, and the values of all others stay as they are. [`RequestFields`] are a request's fields, compressed once before the run;
//! an [`Encoder`] knows for one connection which of them the peer holds in its table already.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;

pub(super) use decoder::{Decoder, FieldReader};
pub(super) use encoder::{Dictionary, Encoder, RequestFields};

/// A field block that cannot be read: the peer's table and ours differ from here on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CompressionError;

/// Size of a table where nobody says anything else, bytes (RFC 9113, section 6.5.2).
pub(super) const DEFAULT_TABLE_BYTES: usize = 4096;

/// What an entry of a table counts beside its name and value, bytes (RFC 7541, section 4.1).
const ENTRY_OVERHEAD_BYTES: usize = 32;

/// What an entry of a table counts, bytes.
fn entry_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD_BYTES
}
