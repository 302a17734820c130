//! A proxy's configuration dump as a stream: counted and copied piece by piece, never held in memory as a whole.
//! Pieces are the sections of an Envoy dump and the entries of a ztunnel's object. Each is held as text until
//! it is parsed and copied.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::io::{self, BufReader, Read};

/// Key of an Envoy dump's array of sections.
pub(crate) const SECTIONS: &str = "configs";

/// Destination of a dump while it is read. Reading continues if writing fails: the copy keeps the error.
pub trait DumpCopy {
    fn push(&mut self, part: &[u8]);
}

impl DumpCopy for Vec<u8> {
    fn push(&mut self, part: &[u8]) {
        self.extend_from_slice(part);
    }
}

/// Receives the key and the text of a piece.
type OnPiece<'a> = dyn FnMut(&str, &str) -> serde_json::Result<()> + 'a;

/// Reads a dump to its end and returns its length in bytes.
pub(crate) fn read(dump: impl Read, on_piece: &mut OnPiece<'_>) -> serde_json::Result<u64> {
    let mut counted = Counted { reader: dump, bytes: 0 };
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(&mut counted));
    Pieces(on_piece).deserialize(&mut json)?;
    json.end()?;
    Ok(counted.bytes)
}

struct Counted<R> {
    reader: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

struct Pieces<'a, 'b>(&'a mut OnPiece<'b>);

impl<'de> DeserializeSeed<'de> for Pieces<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pieces<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sections of a configuration dump")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == SECTIONS {
                map.next_value_seed(Pieces(&mut *self.0))?;
            } else {
                let piece: Box<RawValue> = map.next_value()?;
                (self.0)(&key, piece.get()).map_err(A::Error::custom)?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(piece) = seq.next_element::<Box<RawValue>>()? {
            (self.0)(SECTIONS, piece.get()).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dump_is_read_piece_by_piece() {
        let dump = " {\"a\": [ 1], \"configs\": [{}, {\"b\" :2}]}\n";
        let mut pieces = Vec::new();
        let length = read(dump.as_bytes(), &mut |key, text| {
            pieces.push(format!("{key}={text}"));
            Ok(())
        });
        assert_eq!(length.unwrap(), dump.len() as u64);
        assert_eq!(pieces, ["a=[ 1]", "configs={}", "configs={\"b\" :2}"]);
    }
}
