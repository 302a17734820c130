//! The head that a connection received last: a server's answers to the same request mostly have the same head until the
//! second of its `Date` is over, and comparing bytes takes a tenth of the time of parsing them.

use super::head::Head;

/// Longer heads are not kept: they would take memory with each connection.
const LONGEST_BYTES: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct RecentHead {
    bytes: Vec<u8>,
    /// What it said, and whether it was that of a response which has no body in any case.
    meaning: Option<(Head, bool)>,
}

impl RecentHead {
    /// The head at the start of `bytes` and its length, if it is the same one.
    pub(super) fn find(&self, bytes: &[u8], head_only: bool) -> Option<(usize, Head)> {
        let (head, same) = self.meaning?;
        (same == head_only && bytes.starts_with(&self.bytes)).then_some((self.bytes.len(), head))
    }

    /// These bytes are a whole head, with the blank line at its end, that was parsed.
    pub(super) fn keep(&mut self, bytes: &[u8], head: Head, head_only: bool) {
        if bytes.len() > LONGEST_BYTES {
            return;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.meaning = Some((head, head_only));
    }
}
