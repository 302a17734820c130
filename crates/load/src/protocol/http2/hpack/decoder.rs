//! Reads the peer's field blocks.

use super::{CompressionError, DEFAULT_TABLE_BYTES, entry_bytes, huffman, integer, static_table};
use std::collections::VecDeque;

/// Is shown the fields of a block in their order.
pub(in super::super) trait FieldReader {
    /// Whether the value of this field is of interest. What is not costs no decoding.
    fn wants(&mut self, name: &[u8]) -> bool;
    /// A field that is of interest.
    fn field(&mut self, name: &[u8], value: &[u8]);
}

/// One connection's decoder: the table is as large as it is where nothing is announced, so that servers do what they do
/// for real clients.
#[derive(Debug)]
pub(in super::super) struct Decoder {
    /// The youngest entry first.
    entries: VecDeque<Entry>,
    bytes: usize,
    /// What the peer keeps `bytes` within.
    capacity: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    name: Box<[u8]>,
    value: Box<[u8]>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            capacity: DEFAULT_TABLE_BYTES,
            name: Vec::new(),
            value: Vec::new(),
        }
    }
}

impl Decoder {
    /// Reads a whole block.
    ///
    /// # Errors
    /// Where it cannot be read: nothing that the peer sends afterwards can be.
    pub(in super::super) fn decode(
        &mut self,
        block: &[u8],
        reader: &mut impl FieldReader,
    ) -> Result<(), CompressionError> {
        let mut rest = block;
        let mut begun = false;
        while let Some(first) = rest.first() {
            let taken = match *first {
                0x80.. => self.indexed(rest, reader)?,
                0x40..=0x7f => self.literal(rest, 6, reader)?,
                0x20..=0x3f if !begun => self.resize(rest)?,
                // A change of size may only open a block.
                0x20..=0x3f => return Err(CompressionError),
                0x00..=0x1f => self.literal(rest, 4, reader)?,
            };
            begun |= !matches!(first, 0x20..=0x3f);
            rest = &rest[taken..];
        }
        Ok(())
    }

    fn indexed(&self, bytes: &[u8], reader: &mut impl FieldReader) -> Result<usize, CompressionError> {
        let (index, taken) = integer::decode(bytes, 7)?;
        let (name, value) = self.entry(index)?;
        if reader.wants(name) {
            reader.field(name, value);
        }
        Ok(taken)
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), CompressionError> {
        if let Some(entry) = static_table::get(index) {
            return Ok(entry);
        }
        let place = index.checked_sub(static_table::ENTRIES + 1).ok_or(CompressionError)?;
        let entry = self.entries.get(place).ok_or(CompressionError)?;
        Ok((&entry.name, &entry.value))
    }

    /// A literal; with a prefix of 6 bits it enters the table.
    fn literal(
        &mut self,
        bytes: &[u8],
        prefix_bits: u32,
        reader: &mut impl FieldReader,
    ) -> Result<usize, CompressionError> {
        let enters = prefix_bits == 6;
        let (index, mut taken) = integer::decode(bytes, prefix_bits)?;
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        if index == 0 {
            let (text, step) = Text::read(&bytes[taken..])?;
            text.decode_into(&mut name)?;
            taken += step;
        } else {
            name.extend_from_slice(self.entry(index)?.0);
        }
        let (text, step) = Text::read(&bytes[taken..])?;
        let wanted = reader.wants(&name);
        if wanted || enters {
            self.value.clear();
            text.decode_into(&mut self.value)?;
        }
        if wanted {
            reader.field(&name, &self.value);
        }
        if enters {
            self.enter(&name);
        }
        self.name = name;
        Ok(taken + step)
    }

    /// Puts `name` with the last decoded value into the table; one that is larger than the table empties it.
    fn enter(&mut self, name: &[u8]) {
        let bytes = entry_bytes(name, &self.value);
        self.shrink_to(self.capacity.saturating_sub(bytes));
        if bytes <= self.capacity {
            self.entries.push_front(Entry { name: name.into(), value: self.value.as_slice().into() });
            self.bytes += bytes;
        }
    }

    fn resize(&mut self, bytes: &[u8]) -> Result<usize, CompressionError> {
        let (capacity, taken) = integer::decode(bytes, 5)?;
        if capacity > DEFAULT_TABLE_BYTES {
            return Err(CompressionError);
        }
        self.capacity = capacity;
        self.shrink_to(capacity);
        Ok(taken)
    }

    fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes {
            match self.entries.pop_back() {
                Some(entry) => self.bytes -= entry_bytes(&entry.name, &entry.value),
                None => self.bytes = 0,
            }
        }
    }
}

/// A string as it stands in a block.
struct Text<'b> {
    bytes: &'b [u8],
    huffman: bool,
}

impl<'b> Text<'b> {
    /// Returns how many bytes it took too.
    fn read(bytes: &'b [u8]) -> Result<(Self, usize), CompressionError> {
        let (length, taken) = integer::decode(bytes, 7)?;
        let huffman = bytes[0] & 0x80 != 0;
        let text = bytes.get(taken..taken + length).ok_or(CompressionError)?;
        Ok((Self { bytes: text, huffman }, taken + length))
    }

    fn decode_into(&self, out: &mut Vec<u8>) -> Result<(), CompressionError> {
        if self.huffman {
            return huffman::decode(self.bytes, out);
        }
        out.extend_from_slice(self.bytes);
        Ok(())
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
