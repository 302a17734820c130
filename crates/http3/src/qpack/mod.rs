//! Compression of field sections (QPACK, RFC 9204) without a dynamic table.
//!
//! Both sides announce a table of 0 bytes, which is the default: a section refers to the static table alone, and can be read whatever else
//! was lost or is late.

mod static_table;

use http2::hpack::text::{self, Text};
use http2::hpack::{CompressionError, FieldReader, integer};

/// Start of a section that needs no dynamic table: required insert count 0, base 0.
const PREFIX: [u8; 2] = [0, 0];
/// Flag of a reference to the static table.
const INDEXED_STATIC: u8 = 0xc0;
const NAMED_STATIC: u8 = 0x50;
const LITERAL: u8 = 0x20;
/// Flag that keeps intermediaries from putting a field into a table.
const NAMED_NEVER_INDEXED: u8 = 0x20;
const LITERAL_NEVER_INDEXED: u8 = 0x10;

/// Begins a field section.
pub fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&PREFIX);
}

/// Appends a field, whose name is in lower case. `is_secret`: it must not enter any table.
pub fn push(name: &[u8], value: &[u8], is_secret: bool, out: &mut Vec<u8>) {
    match static_table::find(name, value).0 {
        Some(index) => integer::encode(index, 6, INDEXED_STATIC, out),
        None => {
            push_name(name, is_secret, out);
            text::encode(value, 7, 0, out);
        }
    }
}

/// Appends a field up to its value.
pub fn push_name(name: &[u8], is_secret: bool, out: &mut Vec<u8>) {
    match static_table::find(name, b"").1 {
        Some(index) => {
            let flag = if is_secret { NAMED_NEVER_INDEXED } else { 0 };
            integer::encode(index, 4, NAMED_STATIC | flag, out);
        }
        None => {
            let flag = if is_secret { LITERAL_NEVER_INDEXED } else { 0 };
            text::encode(name, 3, LITERAL | flag, out);
        }
    }
}

/// Decodes field sections.
#[derive(Debug, Default)]
pub struct Decoder {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// Decodes a whole section.
    ///
    /// # Errors
    /// Returns an error if it cannot be decoded, or refers to a dynamic table: there is none.
    pub fn decode(&mut self, section: &[u8], reader: &mut impl FieldReader) -> Result<(), CompressionError> {
        let (inserts, taken) = integer::decode(section, 8)?;
        let (base, step) = integer::decode(&section[taken..], 7)?;
        let is_negative = section[taken] & 0x80 != 0;
        if inserts != 0 || (is_negative && base == 0) {
            return Err(CompressionError::UnknownEntry);
        }
        let mut rest = &section[taken + step..];
        while let Some(first) = rest.first() {
            let taken = match *first {
                0xc0.. => indexed(rest, reader)?,
                0x50..=0x5f | 0x70..=0x7f => self.named(rest, reader)?,
                0x20..=0x3f => self.literal(rest, reader)?,
                // They refer to a dynamic table.
                0x80..=0xbf | 0x40..=0x4f | 0x60..=0x6f | 0x00..=0x1f => {
                    return Err(CompressionError::UnknownEntry);
                }
            };
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// A name of the static table with a literal value.
    fn named(&mut self, bytes: &[u8], reader: &mut impl FieldReader) -> Result<usize, CompressionError> {
        let (index, taken) = integer::decode(bytes, 4)?;
        let (name, _) = static_table::get(index).ok_or(CompressionError::UnknownEntry)?;
        let (text, step) = Text::read(&bytes[taken..], 7)?;
        if reader.wants(name) {
            self.value.clear();
            text.decode_into(&mut self.value)?;
            reader.field(name, &self.value);
        }
        Ok(taken + step)
    }

    fn literal(&mut self, bytes: &[u8], reader: &mut impl FieldReader) -> Result<usize, CompressionError> {
        let (name, taken) = Text::read(bytes, 3)?;
        let (value, step) = Text::read(&bytes[taken..], 7)?;
        self.name.clear();
        name.decode_into(&mut self.name)?;
        if reader.wants(&self.name) {
            self.value.clear();
            value.decode_into(&mut self.value)?;
            reader.field(&self.name, &self.value);
        }
        Ok(taken + step)
    }
}

fn indexed(bytes: &[u8], reader: &mut impl FieldReader) -> Result<usize, CompressionError> {
    let (index, taken) = integer::decode(bytes, 6)?;
    let (name, value) = static_table::get(index).ok_or(CompressionError::UnknownEntry)?;
    if reader.wants(name) {
        reader.field(name, value);
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Fields = Vec<(Vec<u8>, Vec<u8>)>;

    #[derive(Debug, Default)]
    struct Collected(Fields);

    impl FieldReader for Collected {
        fn wants(&mut self, name: &[u8]) -> bool {
            name != b"unwanted"
        }

        fn field(&mut self, name: &[u8], value: &[u8]) {
            self.0.push((name.to_vec(), value.to_vec()));
        }
    }

    fn decode(section: &[u8]) -> Result<Fields, CompressionError> {
        let mut collected = Collected::default();
        Decoder::default().decode(section, &mut collected).map(|()| collected.0)
    }

    #[test]
    fn example_of_rfc_9204_appendix_b_1() {
        let mut section = Vec::new();
        begin(&mut section);
        push_name(b":path", false, &mut section);
        assert_eq!(section, [0, 0, 0x51]);
        section.extend_from_slice(b"\x0b/index.html");
        assert_eq!(decode(&section), Ok(vec![(b":path".to_vec(), b"/index.html".to_vec())]));
    }

    #[test]
    fn references_to_a_dynamic_table_are_refused() {
        for (section, named) in [
            (&[1, 0][..], "an insert count"),
            (&[0, 0x80], "a negative base"),
            (&[0, 0, 0x80], "an indexed field"),
            (&[0, 0, 0x40, 0], "a name reference"),
            (&[0, 0, 0x10], "a post-base index"),
            (&[0, 0, 0x00, 0], "a post-base name reference"),
            (&[0, 0, 0xff, 0x24], "index 99 of the static table"),
        ] {
            assert_eq!(decode(section), Err(CompressionError::UnknownEntry), "{named}");
        }
        assert_eq!(decode(&[0]), Err(CompressionError::Truncated));
        assert_eq!(decode(&[0, 0, 0x51, 0x0b, b'/']), Err(CompressionError::Truncated));
    }

    proptest! {
        #[test]
        fn fields_round_trip(
            fields in proptest::collection::vec(("[a-z-]{1,20}", "[ -~]{0,200}", any::<bool>()), 0..20),
        ) {
            let mut section = Vec::new();
            begin(&mut section);
            for (name, value, is_secret) in &fields {
                push(name.as_bytes(), value.as_bytes(), *is_secret, &mut section);
            }
            let expected: Fields =
                fields.into_iter().map(|(name, value, _)| (name.into_bytes(), value.into_bytes())).collect();
            prop_assert_eq!(decode(&section), Ok(expected));
        }

        #[test]
        fn any_bytes_end(section: Vec<u8>) {
            let _ = decode(&section);
        }
    }

    #[test]
    fn every_static_entry_takes_one_reference() {
        for index in 0..static_table::ENTRIES {
            let (name, value) = static_table::get(index).unwrap();
            let mut section = Vec::new();
            begin(&mut section);
            push(name, value, false, &mut section);
            assert!(section.len() <= 4, "{index}");
            assert_eq!(decode(&section), Ok(vec![(name.to_vec(), value.to_vec())]));
        }
    }
}
