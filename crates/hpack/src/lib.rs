//! Compression of header fields (HPACK, RFC 7541).
//!
//! [`Decoder`] reads the peer's field blocks and keeps the table that the peer fills. A [`FieldReader`] selects the fields it
//! wants: values of other fields are not decoded. [`integer`], [`text`] and [`static_table`] are what an encoder needs.
//! Encoders are left out: the load engine compresses its requests before a run, and a simulated proxy sends a single head
//! per connection ([`encode_literal`]).

mod decoder;
mod huffman;
pub mod integer;
pub mod static_table;
pub mod text;

pub use decoder::{Decoder, FieldReader};

/// Reason why a field block cannot be read. The peer's table and ours differ from there on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CompressionError {
    /// The block ends inside a field.
    #[error("a field is cut short")]
    Truncated,
    /// An integer above [`integer::MAX`].
    #[error("a length or an index is too large")]
    IntegerTooLarge,
    /// A reference to no entry of the static or the dynamic table.
    #[error("a reference to an entry that no table has")]
    UnknownEntry,
    /// Bits that are not Huffman codes of a string.
    #[error("a string is not in Huffman code")]
    InvalidHuffmanCode,
    /// A table larger than announced to the peer, or a change of its size inside a block.
    #[error("a size of the table that is not allowed there")]
    InvalidTableSize,
}

/// Size of a table without a setting, bytes (RFC 9113, section 6.5.2).
pub const DEFAULT_TABLE_BYTES: usize = 4096;

/// Size of a table's entry beside name and value, bytes (RFC 7541, section 4.1).
const ENTRY_OVERHEAD_BYTES: usize = 32;

/// Size of an entry in a table, bytes.
#[must_use]
pub fn entry_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD_BYTES
}

/// Adds a field that enters no table, without Huffman code.
pub fn encode_literal(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    for text in [name, value] {
        integer::encode(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}
