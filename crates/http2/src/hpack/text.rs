//! String literals (RFC 7541, section 5.2; with other prefixes in RFC 9204, section 4.1.2).

use super::{CompressionError, huffman, integer};

/// String as encoded in a block.
#[derive(Debug)]
pub struct Text<'b> {
    bytes: &'b [u8],
    huffman: bool,
}

impl<'b> Text<'b> {
    /// Reads the string at the start of `bytes`, whose length is in the low `prefix_bits` of the first byte, below the flag of its code.
    /// Also returns its encoded size.
    ///
    /// # Errors
    /// Returns an error if the string is longer than `bytes`.
    #[inline]
    pub fn read(bytes: &'b [u8], prefix_bits: u32) -> Result<(Self, usize), CompressionError> {
        let (length, taken) = integer::decode(bytes, prefix_bits)?;
        let huffman = bytes[0] & (1 << prefix_bits) != 0;
        let text = bytes.get(taken..taken + length).ok_or(CompressionError::Truncated)?;
        Ok((Self { bytes: text, huffman }, taken + length))
    }

    /// Appends the string itself.
    ///
    /// # Errors
    /// Returns an error if it is not in Huffman code.
    pub fn decode_into(&self, out: &mut Vec<u8>) -> Result<(), CompressionError> {
        if self.huffman {
            return huffman::decode(self.bytes, out);
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

/// Appends a string, Huffman coded if that is shorter. Its length has `prefix_bits`; `pattern` is the part of the first byte above the
/// flag of the code.
pub fn encode(text: &[u8], prefix_bits: u32, pattern: u8, out: &mut Vec<u8>) {
    let coded_bytes = huffman::encoded_bytes(text);
    if coded_bytes < text.len() {
        integer::encode(coded_bytes, prefix_bits, pattern | 1 << prefix_bits, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len(), prefix_bits, pattern, out);
        out.extend_from_slice(text);
    }
}
