//! Header compression (HPACK, RFC 7541).
//!
//! [`Decoder`] decodes the peer's field blocks and maintains the dynamic table. A [`FieldReader`] selects
//! fields; values of other fields are not decoded. [`integer`], [`text`] and [`static_table`] are building
//! blocks for encoders. There is no full encoder: the load engine compresses its requests before a run, and a
//! simulated proxy sends a single header block per connection ([`encode_literal`]).

mod decoder;
mod huffman;
pub mod integer;
pub mod static_table;
pub mod text;

pub use decoder::{Decoder, FieldReader};

/// Reason why a field block cannot be decoded. The dynamic tables of both sides are then out of sync.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CompressionError {
    /// The block ends inside a field.
    #[error("a field is cut short")]
    Truncated,
    /// An integer is above [`integer::MAX`].
    #[error("a length or an index is too large")]
    IntegerTooLarge,
    /// An index refers to no entry of the static or dynamic table.
    #[error("a reference to an entry that no table has")]
    UnknownEntry,
    /// Invalid Huffman code or padding.
    #[error("a string is not in Huffman code")]
    InvalidHuffmanCode,
    /// A table size above the announced one, or a size update inside a block.
    #[error("a size of the table that is not allowed there")]
    InvalidTableSize,
}

/// Default size of the dynamic table, bytes (RFC 9113, section 6.5.2).
pub const DEFAULT_TABLE_BYTES: usize = 4096;

/// Overhead of a table entry in addition to name and value, bytes (RFC 7541, section 4.1).
const ENTRY_OVERHEAD_BYTES: usize = 32;

/// Size of a table entry, bytes.
#[must_use]
pub fn entry_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD_BYTES
}

/// Appends a literal field without indexing and without Huffman coding.
pub fn encode_literal(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    for text in [name, value] {
        integer::encode(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}
