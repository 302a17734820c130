//! Decodes the peer's field blocks.

use super::text::Text;
use super::{CompressionError, DEFAULT_TABLE_BYTES, entry_bytes, integer, static_table};
use std::collections::VecDeque;

/// Receives the fields of a block in order.
pub trait FieldReader {
    /// Returns false to skip decoding the value of this field.
    fn wants(&mut self, name: &[u8]) -> bool;
    /// Receives a wanted field.
    fn field(&mut self, name: &[u8], value: &[u8]);
}

/// Decoder of a connection. The default table has the size that peers assume without a SETTINGS entry, so
/// that servers compress as they do for real clients.
#[derive(Debug)]
pub struct Decoder {
    /// Entries, newest first.
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Limit of `bytes`, set by the peer.
    capacity: usize,
    /// Limit of `capacity`, announced to the peer.
    max_capacity: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    /// Name and value.
    text: Box<[u8]>,
    name_bytes: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::with_table_bytes(DEFAULT_TABLE_BYTES)
    }
}

impl Decoder {
    /// Creates a decoder whose table size was announced to the peer as `bytes`.
    #[must_use]
    pub fn with_table_bytes(bytes: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            capacity: bytes,
            max_capacity: bytes,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Decodes a whole block.
    ///
    /// # Errors
    /// Returns an error if the block cannot be decoded. Later blocks of the peer cannot be decoded either.
    pub fn decode(&mut self, block: &[u8], reader: &mut impl FieldReader) -> Result<(), CompressionError> {
        let mut rest = block;
        let mut begun = false;
        while let Some(first) = rest.first() {
            let taken = match *first {
                0x80.. => self.indexed(rest, reader)?,
                0x40..=0x7f => self.literal(rest, 6, reader)?,
                0x20..=0x3f if !begun => self.resize(rest)?,
                // A table size update is only allowed at the start of a block.
                0x20..=0x3f => return Err(CompressionError::InvalidTableSize),
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
        let place = index.checked_sub(static_table::ENTRIES + 1).ok_or(CompressionError::UnknownEntry)?;
        let entry = self.entries.get(place).ok_or(CompressionError::UnknownEntry)?;
        Ok(entry.text.split_at(entry.name_bytes))
    }

    /// Decodes a literal. With a prefix of 6 bits, it is added to the table.
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
            let (text, step) = Text::read(&bytes[taken..], 7)?;
            text.decode_into(&mut name)?;
            taken += step;
        } else {
            name.extend_from_slice(self.entry(index)?.0);
        }
        let (text, step) = Text::read(&bytes[taken..], 7)?;
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

    /// Adds `name` with the last decoded value to the table. An entry larger than the table empties it.
    fn enter(&mut self, name: &[u8]) {
        let bytes = entry_bytes(name, &self.value);
        self.shrink_to(self.capacity.saturating_sub(bytes));
        if bytes <= self.capacity {
            let text = [name, &self.value[..]].concat().into();
            self.entries.push_front(Entry { text, name_bytes: name.len() });
            self.bytes += bytes;
        }
    }

    fn resize(&mut self, bytes: &[u8]) -> Result<usize, CompressionError> {
        let (capacity, taken) = integer::decode(bytes, 5)?;
        if capacity > self.max_capacity {
            return Err(CompressionError::InvalidTableSize);
        }
        self.capacity = capacity;
        self.shrink_to(capacity);
        Ok(taken)
    }

    fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes {
            match self.entries.pop_back() {
                Some(entry) => self.bytes -= entry_bytes(&entry.text, &[]),
                None => self.bytes = 0,
            }
        }
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
