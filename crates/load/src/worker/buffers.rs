//! A pool of output buffers, reused by whichever connection has something to send next.

/// Buffers up to this size are kept.
const KEPT_BYTES: usize = 256 * 1024;
/// Maximum number kept: connections that only reply to their peer (to PINGs, say) return more than they take.
const KEPT_BUFFERS: usize = 64;

/// Empty output buffers for reuse.
#[derive(Debug, Default)]
pub(super) struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// Takes an empty buffer.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps a returned buffer, unless it is large or enough are kept.
    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= KEPT_BYTES && self.0.len() < KEPT_BUFFERS {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_buffers_are_emptied_and_bounded() {
        let mut buffers = Buffers::default();
        buffers.give_back(Vec::with_capacity(KEPT_BYTES + 1));
        assert_eq!(buffers.take().capacity(), 0);
        for _ in 0..10 * KEPT_BUFFERS {
            buffers.give_back(b"answer".to_vec());
        }
        assert_eq!(buffers.0.len(), KEPT_BUFFERS);
        let again = buffers.take();
        assert!(again.is_empty() && again.capacity() > 0);
    }
}
