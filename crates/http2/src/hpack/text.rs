//! String literals (RFC 7541, section 5.2).

use super::{CompressionError, huffman, integer};

/// String as encoded in a block.
pub(super) struct Text<'b> {
    bytes: &'b [u8],
    huffman: bool,
}

impl<'b> Text<'b> {
    /// Reads the string at the start of `bytes`. Also returns its encoded size.
    pub(super) fn read(bytes: &'b [u8]) -> Result<(Self, usize), CompressionError> {
        let (length, taken) = integer::decode(bytes, 7)?;
        let huffman = bytes[0] & 0x80 != 0;
        let text = bytes.get(taken..taken + length).ok_or(CompressionError::Truncated)?;
        Ok((Self { bytes: text, huffman }, taken + length))
    }

    pub(super) fn decode_into(&self, out: &mut Vec<u8>) -> Result<(), CompressionError> {
        if self.huffman {
            return huffman::decode(self.bytes, out);
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

/// Appends a string, Huffman coded if that is shorter.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let coded_bytes = huffman::encoded_bytes(text);
    if coded_bytes < text.len() {
        integer::encode(coded_bytes, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}
