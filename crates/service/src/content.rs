//! Content of messages: bytes, followed by filler. Long filler is never copied.

use bytes::Bytes;
use std::io::IoSlice;

/// Length of [`FILLER`].
const FILLER_BYTES: usize = 16 * 1024;
/// Bodies repeat this text from its start: lines of 64 characters that contain their own position.
pub(crate) static FILLER: [u8; FILLER_BYTES] = filler();
/// Maximum size of filler that is copied behind other bytes instead of being sent from [`FILLER`].
pub(crate) const MAX_COPIED_BYTES: u64 = 8 * 1024;
/// Maximum slices of filler sent in one call.
const MAX_SLICES: usize = 16;

const fn filler() -> [u8; FILLER_BYTES] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [b'.'; FILLER_BYTES];
    let mut at = 0;
    while at < FILLER_BYTES {
        // Each line starts with its position in hexadecimal.
        bytes[at] = DIGITS[at >> 12 & 15];
        bytes[at + 1] = DIGITS[at >> 8 & 15];
        bytes[at + 2] = DIGITS[at >> 4 & 15];
        bytes[at + 3] = DIGITS[at & 15];
        bytes[at + 63] = b'\n';
        at += 64;
    }
    bytes
}

/// The unsent part of a text that repeats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filler {
    text: &'static [u8],
    /// Position of the next byte in the text.
    at: usize,
    left_bytes: u64,
}

impl Default for Filler {
    fn default() -> Self {
        Self::new(&FILLER, 0)
    }
}

impl Filler {
    /// This many bytes of a text, from its start.
    pub(crate) fn new(text: &'static [u8], bytes: u64) -> Self {
        Self { text, at: 0, left_bytes: bytes }
    }

    /// This many bytes of the same text, from its start.
    pub(crate) fn again(self, bytes: u64) -> Self {
        Self::new(self.text, bytes)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.left_bytes
    }

    /// `head` and the filler after it, as far as one call sends it: slices, and their number.
    pub(crate) fn slices<'s>(&self, head: &'s [u8]) -> ([IoSlice<'s>; 1 + MAX_SLICES], usize) {
        let mut slices = [IoSlice::new(head); 1 + MAX_SLICES];
        let (mut used, mut from, mut left) = (1, self.at, self.left_bytes);
        while left > 0 && used < slices.len() {
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(self.text.len() - from);
            slices[used] = IoSlice::new(&self.text[from..from + length]);
            used += 1;
            left -= length as u64;
            from = 0;
        }
        (slices, used)
    }

    /// Notes that this many bytes of a head and the filler after it were sent; returns how many of them were the
    /// head's.
    pub(crate) fn sent_after(&mut self, head: &[u8], bytes: usize) -> usize {
        let of_head = bytes.min(head.len());
        self.advance(bytes - of_head);
        of_head
    }

    fn advance(&mut self, bytes: usize) {
        self.at = (self.at + bytes) % self.text.len();
        self.left_bytes -= bytes as u64;
    }

    /// Takes at most this many bytes, fewer at the end of the text.
    fn take(&mut self, most: usize) -> Bytes {
        let left = usize::try_from(self.left_bytes).unwrap_or(usize::MAX);
        let length = most.min(left).min(self.text.len() - self.at);
        let piece = Bytes::from_static(&self.text[self.at..self.at + length]);
        self.advance(length);
        piece
    }
}

/// The unsent content of a message over HTTP/2.
#[derive(Debug, Default)]
pub(crate) struct Content {
    head: Bytes,
    filler: Filler,
}

impl Content {
    /// Bytes, followed by this much filler.
    pub(crate) fn new(head: impl Into<Bytes>, filler_bytes: u64) -> Self {
        Self { head: head.into(), filler: Filler::new(&FILLER, filler_bytes) }
    }

    pub(crate) fn filler(bytes: u64) -> Self {
        Self::new(Bytes::new(), bytes)
    }

    /// The content with the head that its own becomes.
    pub(crate) fn map_head(self, change: impl FnOnce(Bytes) -> Bytes) -> Self {
        Self { head: change(self.head), ..self }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.head.len() as u64 + self.filler.bytes()
    }

    /// Takes at most this many bytes, fewer where they are not contiguous.
    pub(crate) fn take(&mut self, most: usize) -> Bytes {
        if self.head.is_empty() {
            return self.filler.take(most);
        }
        self.head.split_to(most.min(self.head.len()))
    }
}
