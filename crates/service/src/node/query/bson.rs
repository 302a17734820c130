//! BSON, the encoding of MongoDB's documents: writes the few types that queries need, and reads the fields of
//! any document (<https://bsonspec.org/spec.html>).
//!
//! Documents that are read come from a server that may be broken or hostile: every length is checked, and
//! nested documents are skipped by their length, so that nesting costs nothing.

use std::str;

/// Length field and terminator.
const MIN_DOCUMENT_BYTES: usize = 5;
const LENGTH_BYTES: usize = 4;
const OBJECT_ID_BYTES: usize = 12;

/// Why bytes are not a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Malformed(pub(super) &'static str);

/// A document that is complete after every call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document(Vec<u8>);

/// A value of a field. Nested documents are encoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'b> {
    Double(f64),
    String(&'b str),
    Document(&'b [u8]),
    Array(&'b [u8]),
    ObjectId([u8; OBJECT_ID_BYTES]),
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    /// A type that no response needs. It is only read.
    Other,
}

impl Document {
    pub(super) fn new() -> Self {
        Self(vec![MIN_DOCUMENT_BYTES as u8, 0, 0, 0, 0])
    }

    /// Adds a field. `name` has no zero byte.
    pub(super) fn with(mut self, name: &str, value: Value<'_>) -> Self {
        debug_assert!(!name.contains('\0'), "{name:?}");
        self.0.pop();
        self.0.push(value.kind());
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        value.write(&mut self.0);
        self.0.push(0);
        let length = (self.0.len() as u32).to_le_bytes();
        self.0[..LENGTH_BYTES].copy_from_slice(&length);
        self
    }

    /// An array: a document whose names are indexes.
    pub(super) fn array<'v>(values: impl IntoIterator<Item = Value<'v>>) -> Self {
        let values = values.into_iter().enumerate();
        values.fold(Self::new(), |array, (index, value)| array.with(&index.to_string(), value))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Value<'_> {
    fn kind(self) -> u8 {
        match self {
            Self::Double(_) => 0x01,
            Self::String(_) => 0x02,
            Self::Document(_) => 0x03,
            Self::Array(_) => 0x04,
            Self::ObjectId(_) => 0x07,
            Self::Boolean(_) => 0x08,
            Self::Other => unreachable!("it is only read"),
            Self::Int32(_) => 0x10,
            Self::Int64(_) => 0x12,
        }
    }

    fn write(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Double(value) => bytes.extend_from_slice(&value.to_le_bytes()),
            Self::String(text) => {
                bytes.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
                bytes.extend_from_slice(text.as_bytes());
                bytes.push(0);
            }
            Self::Document(encoded) | Self::Array(encoded) => bytes.extend_from_slice(encoded),
            Self::ObjectId(id) => bytes.extend_from_slice(&id),
            Self::Boolean(value) => bytes.push(value.into()),
            Self::Int32(value) => bytes.extend_from_slice(&value.to_le_bytes()),
            Self::Int64(value) => bytes.extend_from_slice(&value.to_le_bytes()),
            Self::Other => {}
        }
    }

    /// The value of any numeric type.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Double(value) => Some(value),
            Self::Int32(value) => Some(value.into()),
            Self::Int64(value) => Some(value as f64),
            _ => None,
        }
    }
}

/// The fields of an encoded document, or the values of an array. The first error ends them.
#[derive(Debug, Clone)]
pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    /// `encoded`: one document and nothing else.
    pub(super) fn new(encoded: &'b [u8]) -> Result<Self, Malformed> {
        let mut rest = encoded;
        if encoded.len() < MIN_DOCUMENT_BYTES || length(&mut rest)? != encoded.len() {
            return Err(Malformed("a document has another length than it says"));
        }
        match rest.split_last() {
            Some((0, rest)) => Ok(Self { rest }),
            _ => Err(Malformed("a document does not end with a zero byte")),
        }
    }

    fn field(&mut self) -> Result<(&'b str, Value<'b>), Malformed> {
        let [kind] = fixed(&mut self.rest)?;
        let name = c_string(&mut self.rest)?;
        let name = str::from_utf8(name).map_err(|_| Malformed("the name of a field is not UTF-8"))?;
        Ok((name, value(kind, &mut self.rest)?))
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(&'b str, Value<'b>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

fn value<'b>(kind: u8, rest: &mut &'b [u8]) -> Result<Value<'b>, Malformed> {
    let skipped = match kind {
        0x01 => return Ok(Value::Double(f64::from_le_bytes(fixed(rest)?))),
        0x02 => {
            let text = str::from_utf8(string(rest)?);
            return Ok(Value::String(text.map_err(|_| Malformed("a string is not UTF-8"))?));
        }
        0x03 => return Ok(Value::Document(nested(rest)?)),
        0x04 => return Ok(Value::Array(nested(rest)?)),
        0x07 => return Ok(Value::ObjectId(fixed(rest)?)),
        0x08 => {
            return match fixed(rest)? {
                [0] => Ok(Value::Boolean(false)),
                [1] => Ok(Value::Boolean(true)),
                _ => Err(Malformed("a boolean is neither true nor false")),
            };
        }
        0x10 => return Ok(Value::Int32(i32::from_le_bytes(fixed(rest)?))),
        0x12 => return Ok(Value::Int64(i64::from_le_bytes(fixed(rest)?))),
        // Binary: a length, the kind of its content, and the content.
        0x05 => length(rest)? + 1,
        // Undefined, null, and the keys below and above all others.
        0x06 | 0x0a | 0xff | 0x7f => 0,
        // Time of day, timestamp.
        0x09 | 0x11 => 8,
        // Regular expression: pattern and options.
        0x0b => {
            c_string(rest)?;
            c_string(rest)?;
            0
        }
        // Pointer into a collection.
        0x0c => {
            string(rest)?;
            OBJECT_ID_BYTES
        }
        // JavaScript, symbol.
        0x0d | 0x0e => {
            string(rest)?;
            0
        }
        // JavaScript with a scope: its length includes the length field.
        0x0f => {
            let whole = length(rest)?;
            whole.checked_sub(LENGTH_BYTES).ok_or(Malformed("a length is less than its own size"))?
        }
        // Decimal.
        0x13 => 16,
        _ => return Err(Malformed("a field has an unknown type")),
    };
    bytes(rest, skipped)?;
    Ok(Value::Other)
}

fn bytes<'b>(rest: &mut &'b [u8], count: usize) -> Result<&'b [u8], Malformed> {
    let (taken, after) = rest.split_at_checked(count).ok_or(Malformed("a document ends within a field"))?;
    *rest = after;
    Ok(taken)
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Malformed> {
    Ok(bytes(rest, N)?.try_into().expect("it has N bytes"))
}

fn length(rest: &mut &[u8]) -> Result<usize, Malformed> {
    usize::try_from(i32::from_le_bytes(fixed(rest)?)).map_err(|_| Malformed("a length is negative"))
}

/// A string's bytes, without the terminator that its length includes.
fn string<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], Malformed> {
    let length = length(rest)?;
    match bytes(rest, length)?.split_last() {
        Some((0, text)) => Ok(text),
        _ => Err(Malformed("a string does not end with a zero byte")),
    }
}

fn c_string<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], Malformed> {
    let end = rest.iter().position(|byte| *byte == 0).ok_or(Malformed("a name does not end"))?;
    let text = bytes(rest, end)?;
    bytes(rest, 1)?;
    Ok(text)
}

/// An encoded document; only its length is checked.
fn nested<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], Malformed> {
    let length = length(&mut &**rest)?;
    bytes(rest, length)
}

#[cfg(test)]
#[path = "bson_tests.rs"]
mod tests;
