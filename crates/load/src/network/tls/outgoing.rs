//! Outgoing records: one buffer for all connections of a thread, filled and sent at once, never zeroed again.

use rustls::unbuffered::InsufficientSizeError;

/// A reusable buffer for outgoing records.
#[derive(Default)]
pub(super) struct Outgoing {
    room: Vec<u8>,
    filled: usize,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.room[..self.filled]
    }

    pub(super) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Lets `write` append bytes, and retries once with the space that it requires. Returns true on success.
    pub(super) fn add(
        &mut self,
        mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<InsufficientSizeError>>,
    ) -> bool {
        loop {
            match write(&mut self.room[self.filled..]) {
                Ok(written) => {
                    self.filled += written;
                    return true;
                }
                Err(Some(needed)) if needed.required_size > self.room.len() - self.filled => {
                    self.room.resize(self.filled + needed.required_size, 0);
                }
                Err(_) => return false,
            }
        }
    }
}
