//! A proxy's configuration dump, read once: counted and copied at the same time, and never held as a whole.
//! [`read`] passes every byte through a [`Tee`] to a JSON reader, which tells the tee where something begins that may have to
//! stay out of the copy (certificates, keys) and, once known, whether it does. [`list`] has the shapes that dumps share.

pub mod list;

use serde::de::DeserializeSeed;
use std::cell::RefCell;
use std::io::{self, BufReader, Read};

/// Bytes collected before they are copied.
const PIECE_BYTES: usize = 64 * 1024;

/// Destination of a dump as it is read. Reading goes on if writing fails: the copy remembers the failure.
pub trait DumpCopy {
    fn push(&mut self, part: &[u8]);
}

impl DumpCopy for Vec<u8> {
    fn push(&mut self, part: &[u8]) {
        self.extend_from_slice(part);
    }
}

/// Reads a dump to its end and returns its length in bytes. After an error the copy is not JSON.
pub fn read(
    dump: impl Read,
    tee: &Tee<'_>,
    look: impl for<'de> DeserializeSeed<'de, Value = ()>,
) -> Result<u64, serde_json::Error> {
    // The tap stands behind the buffer: the JSON reader takes one byte at a time.
    let reader = Teed { reader: BufReader::with_capacity(PIECE_BYTES, dump), tee };
    let mut json = serde_json::Deserializer::from_reader(reader);
    look.deserialize(&mut json)?;
    json.end()?;
    tee.0.borrow_mut().pass_on();
    Ok(tee.position())
}

/// Counts the bytes on their way to the JSON reader, and copies those that are not redacted.
pub struct Tee<'c>(RefCell<Passing<'c>>);

struct Passing<'c> {
    position: u64,
    piece: Vec<u8>,
    state: State,
    copy: &'c mut dyn DumpCopy,
}

#[derive(Clone, Copy)]
enum State {
    Copied,
    /// From this index of the piece on, not yet known.
    Held(usize),
    Redacted,
}

impl<'c> Tee<'c> {
    pub fn new(copy: &'c mut dyn DumpCopy) -> Self {
        Self(RefCell::new(Passing { position: 0, piece: Vec::new(), state: State::Copied, copy }))
    }

    pub fn position(&self) -> u64 {
        self.0.borrow().position
    }

    /// Holds back what follows until [`Self::release`] or [`Self::redact`].
    pub fn hold(&self) {
        let mut passing = self.0.borrow_mut();
        passing.state = State::Held(passing.piece.len());
    }

    pub fn release(&self) {
        self.0.borrow_mut().state = State::Copied;
    }

    /// Copies `instead` in place of what was held and what follows.
    pub fn redact(&self, instead: &str) {
        let mut passing = self.0.borrow_mut();
        if let State::Held(from) = passing.state {
            passing.piece.truncate(from);
        }
        passing.piece.extend_from_slice(instead.as_bytes());
        passing.state = State::Redacted;
    }

    /// Copies again. `end` closes what replaced redacted bytes, if there were any.
    pub fn resume(&self, end: &str) {
        let mut passing = self.0.borrow_mut();
        if matches!(passing.state, State::Redacted) {
            passing.piece.extend_from_slice(end.as_bytes());
        }
        passing.state = State::Copied;
    }
}

impl Passing<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.position += bytes.len() as u64;
        if !matches!(self.state, State::Redacted) {
            self.piece.extend_from_slice(bytes);
        }
        if matches!(self.state, State::Copied) && self.piece.len() >= PIECE_BYTES {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        self.copy.push(&self.piece);
        self.piece.clear();
    }
}

struct Teed<'t, 'c, R> {
    reader: R,
    tee: &'t Tee<'c>,
}

impl<R: Read> Read for Teed<'_, '_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.tee.0.borrow_mut().take(&buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize as _;
    use serde::de::IgnoredAny;

    struct Unlooked;

    impl<'de> DeserializeSeed<'de> for Unlooked {
        type Value = ();

        fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            IgnoredAny::deserialize(deserializer).map(drop)
        }
    }

    #[derive(Default)]
    struct Counting {
        bytes: u64,
        longest: usize,
    }

    impl DumpCopy for Counting {
        fn push(&mut self, part: &[u8]) {
            self.bytes += part.len() as u64;
            self.longest = self.longest.max(part.len());
        }
    }

    #[test]
    fn a_long_dump_passes_in_small_parts() {
        const BLANKS: u64 = 4_000_000;
        let dump = b"[1".as_slice().chain(io::repeat(b' ').take(BLANKS)).chain(b"]".as_slice());
        let mut copy = Counting::default();
        let length = read(dump, &Tee::new(&mut copy), Unlooked).unwrap();
        assert_eq!(length, BLANKS + 3);
        assert_eq!(copy.bytes, length);
        assert!(copy.longest <= 2 * PIECE_BYTES, "{}", copy.longest);
    }

    #[test]
    fn what_is_withheld_is_replaced_and_what_is_released_is_not() {
        let mut copy = Vec::new();
        let tee = Tee::new(&mut copy);
        let take = |text: &str| tee.0.borrow_mut().take(text.as_bytes());
        take("a");
        tee.hold();
        take("b");
        tee.release();
        tee.resume("never");
        take("c");
        tee.hold();
        take("secret");
        tee.redact("<");
        take("secret");
        tee.resume(">");
        take("d");
        assert_eq!(tee.position(), 16);
        tee.0.borrow_mut().pass_on();
        assert_eq!(copy, b"abc<>d");
    }
}
