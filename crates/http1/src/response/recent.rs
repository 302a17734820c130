//! The head that a connection received last. Responses to the same request mostly have identical heads until
//! the second in their `Date` changes, and comparing bytes takes a tenth of the time of parsing them.

use super::head::Head;

/// Maximum size of a head that is kept: longer ones would take too much memory per connection.
const MAX_KEPT_HEAD_BYTES: usize = 1024;

/// The last head of a connection, with its meaning.
#[derive(Debug, Default)]
pub(super) struct RecentHead {
    bytes: Vec<u8>,
    /// The parsed head, and whether it was for a response without a body regardless of the head.
    meaning: Option<(Head, bool)>,
}

impl RecentHead {
    /// Returns the head at the start of `bytes` and its length, if it is identical to the last one.
    pub(super) fn find(&self, bytes: &[u8], head_only: bool) -> Option<(usize, Head)> {
        let (head, same) = self.meaning?;
        (same == head_only && bytes.starts_with(&self.bytes)).then_some((self.bytes.len(), head))
    }

    /// Keeps a complete, parsed head, including the blank line at its end.
    pub(super) fn keep(&mut self, bytes: &[u8], head: Head, head_only: bool) {
        if bytes.len() > MAX_KEPT_HEAD_BYTES {
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.meaning = Some((head, head_only));
    }
}
