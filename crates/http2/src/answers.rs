//! The bound on frames that a peer wants answered (RFC 9113, section 10.5).

/// Maximum number of answered frames beyond those that the traffic accounts for.
pub const MAX_ANSWERS: u32 = 10_000;
/// Answered frames that the end of a response and each DATA frame with content account for, of either side.
/// Servers of long streams measure the round trip with at most one PING per piece of content.
const ANSWERS_PER_CONTENT: u32 = 10;

/// Answered PING and SETTINGS frames that the traffic does not account for. A peer that sends little else is
/// flooding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers(u32);

/// The peer sent more than [`MAX_ANSWERS`] frames to answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flood;

impl Answers {
    /// Counts a frame to answer.
    ///
    /// # Errors
    /// Returns an error if there are too many: the connection must be closed.
    #[inline]
    pub fn count(&mut self) -> Result<(), Flood> {
        self.0 += 1;
        if self.0 > MAX_ANSWERS { Err(Flood) } else { Ok(()) }
    }

    /// Content was sent or received, or a response has ended.
    #[inline]
    pub fn account(&mut self) {
        self.0 = self.0.saturating_sub(ANSWERS_PER_CONTENT);
    }
}
