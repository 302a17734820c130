//! Header fields of requests, compressed once before a run, and per connection what the peer's table already
//! holds.
//!
//! A constant field enters the peer's dynamic table with the first request that has it. Afterwards it takes
//! one or two bytes, as with every real client. The table never overflows, because a [`Dictionary`] admits no
//! more fields than fit into the default table size. So an entry stays once made, and its index follows from
//! counting. Paths and lengths, which differ between requests, and credentials are sent as literals each
//! time.

use crate::target::{Text, Values};
use http2::hpack::{DEFAULT_TABLE_BYTES, entry_bytes, integer, static_table, text};
use std::ops::Range;

/// The fields that may enter the peers' dynamic tables, numbered from 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Dictionary {
    fields: Vec<Field>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Field {
    name: Box<[u8]>,
    value: Box<[u8]>,
}

impl Dictionary {
    /// Adds a field, if it may enter a table and there is room.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        if may_enter(name) {
            self.add_constant(name, value);
        }
    }

    /// Adds a field that is constant over many requests, if there is room.
    pub(super) fn add_constant(&mut self, name: &[u8], value: &[u8]) {
        let bytes = self.bytes + entry_bytes(name, value);
        let known = static_table::find(name, value).0.is_some() || self.number(name, value).is_some();
        if !known && bytes <= DEFAULT_TABLE_BYTES {
            self.bytes = bytes;
            self.fields.push(Field { name: name.into(), value: value.into() });
        }
    }

    /// The number of a field that was added.
    fn number(&self, name: &[u8], value: &[u8]) -> Option<usize> {
        self.fields.iter().position(|field| *field.name == *name && *field.value == *value)
    }
}

/// False for fields that differ between requests, which would evict each other, and for secrets (RFC 7541,
/// section 7.1.3).
fn may_enter(name: &[u8]) -> bool {
    !matches!(name, b":path" | b"content-length") && !is_secret(name)
}

pub(in crate::protocol) fn is_secret(name: &[u8]) -> bool {
    matches!(name, b"authorization" | b"proxy-authorization" | b"cookie")
}

/// The fields of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestFields {
    bytes: Vec<u8>,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    /// A literal range of `bytes`.
    Constant(Range<usize>),
    /// Its number in the dictionary, and the literal in `bytes` that adds it to the table.
    Entry { number: usize, literal: Range<usize> },
    /// A value with placeholders for numbers.
    Varying {
        /// The representation up to the value: a literal that enters no table, and its name.
        name: Box<[u8]>,
        value: Text,
        /// Number of placeholders in the parts before.
        gaps_before: usize,
    },
    /// The cookies of the session: nothing without any.
    Cookies,
}

impl RequestFields {
    /// Adds a field; its name must be in lower case.
    pub(super) fn push(&mut self, name: &[u8], value: &[u8], dictionary: &Dictionary) {
        let (whole, named) = static_table::find(name, value);
        let start = self.bytes.len();
        if let Some(index) = whole {
            integer::encode(index, 7, 0x80, &mut self.bytes);
            return self.push_constant(start);
        }
        let number = dictionary.number(name, value);
        let (prefix_bits, pattern) = match number {
            Some(_) => (6, 0x40),
            None if is_secret(name) => (4, 0x10),
            None => (4, 0x00),
        };
        integer::encode(named.unwrap_or(0), prefix_bits, pattern, &mut self.bytes);
        if named.is_none() {
            text::encode(name, 7, 0, &mut self.bytes);
        }
        text::encode(value, 7, 0, &mut self.bytes);
        match number {
            Some(number) => self.parts.push(Part::Entry { number, literal: start..self.bytes.len() }),
            None => self.push_constant(start),
        }
    }

    /// Adds a field with placeholders in its value; its name must be in lower case.
    pub(super) fn push_varying(&mut self, name: &[u8], value: &Text) {
        let mut start = Vec::new();
        let named = static_table::find(name, b"").1;
        let pattern = if is_secret(name) { 0x10 } else { 0x00 };
        integer::encode(named.unwrap_or(0), 4, pattern, &mut start);
        if named.is_none() {
            text::encode(name, 7, 0, &mut start);
        }
        let gaps_before = self.gaps();
        self.parts.push(Part::Varying { name: start.into(), value: value.clone(), gaps_before });
    }

    /// Adds the cookies of the session.
    pub(super) fn push_cookies(&mut self) {
        self.parts.push(Part::Cookies);
    }

    /// Number of placeholders.
    pub(super) fn gaps(&self) -> usize {
        let gaps = |part: &Part| match part {
            Part::Varying { value, .. } => value.places().count(),
            Part::Constant(_) | Part::Entry { .. } | Part::Cookies => 0,
        };
        self.parts.iter().map(gaps).sum()
    }

    /// Marks everything added since `start` as constant.
    fn push_constant(&mut self, start: usize) {
        let end = self.bytes.len();
        match self.parts.last_mut() {
            Some(Part::Constant(range)) if range.end == start => range.end = end,
            _ => self.parts.push(Part::Constant(start..end)),
        }
    }
}

/// Appends a value with its length in front.
pub(in crate::protocol) fn push_value(value: &Text, values: Values<'_>, out: &mut Vec<u8>) {
    out.push(0);
    let start = out.len();
    value.write_with(values, out);
    let bytes = out.len() - start;
    if bytes < 0x7f {
        out[start - 1] = bytes as u8;
        return;
    }
    let mut length = Vec::new();
    integer::encode(bytes, 7, 0, &mut length);
    out.splice(start - 1..start, length);
}

/// Tracks which fields one connection's peer holds in its table.
#[derive(Debug)]
pub(super) struct Encoder {
    /// Per dictionary number: how many fields had entered the table when it did, itself included; 0 if it has
    /// not.
    entered_as: Vec<u16>,
    entered: u16,
    /// Size of all fields that have entered or may enter, bytes.
    wanted_bytes: usize,
    /// Size of the peer's table, as last announced to it.
    table_bytes: usize,
    /// A size update that the next block must announce.
    to_tell: Option<usize>,
}

impl Encoder {
    pub(super) fn new(dictionary: &Dictionary) -> Self {
        Self {
            entered_as: vec![0; dictionary.fields.len()],
            entered: 0,
            wanted_bytes: dictionary.bytes,
            table_bytes: DEFAULT_TABLE_BYTES,
            to_tell: None,
        }
    }

    /// Resets the state for a new connection.
    pub(super) fn reset(&mut self) {
        self.forget();
        self.table_bytes = DEFAULT_TABLE_BYTES;
        self.to_tell = None;
    }

    fn forget(&mut self) {
        self.entered_as.fill(0);
        self.entered = 0;
    }

    /// Limits the peer's table to this many bytes. A table that is too small for all dictionary fields is not
    /// used.
    pub(super) fn limit(&mut self, bytes: usize) {
        if bytes < self.table_bytes {
            let kept = if bytes < self.wanted_bytes { 0 } else { bytes };
            if kept == 0 {
                self.forget();
            }
            self.table_bytes = kept;
            self.to_tell = Some(kept);
        }
    }

    /// Appends the field block of a request to `out`, with `values` in its placeholders.
    pub(super) fn encode(&mut self, fields: &RequestFields, values: Values<'_>, out: &mut Vec<u8>) {
        if let Some(bytes) = self.to_tell.take() {
            integer::encode(bytes, 5, 0x20, out);
        }
        for part in &fields.parts {
            match part {
                Part::Constant(range) => out.extend_from_slice(&fields.bytes[range.clone()]),
                Part::Entry { number, literal } => self.entry(*number, &fields.bytes[literal.clone()], out),
                Part::Varying { name, value, gaps_before } => {
                    out.extend_from_slice(name);
                    push_value(value, values.after(*gaps_before), out);
                }
                Part::Cookies if values.cookies.is_empty() => {}
                Part::Cookies => {
                    // Never indexed: a secret (RFC 7541, section 7.1.3).
                    integer::encode(static_table::find(b"cookie", b"").1.unwrap_or(0), 4, 0x10, out);
                    text::encode(values.cookies, 7, 0, out);
                }
            }
        }
    }

    fn entry(&mut self, number: usize, literal: &[u8], out: &mut Vec<u8>) {
        let entered_as = self.entered_as[number];
        if entered_as > 0 {
            let index = static_table::ENTRIES + 1 + usize::from(self.entered - entered_as);
            return integer::encode(index, 7, 0x80, out);
        }
        // A table of size 0 accepts it and stays empty.
        out.extend_from_slice(literal);
        if self.table_bytes > 0 {
            self.entered += 1;
            self.entered_as[number] = self.entered;
        }
    }
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
