//! Buffers for what is to be sent, used again by whichever connection has something to send next.

/// Buffers up to this size are kept.
const KEPT_BYTES: usize = 256 * 1024;
/// So many are kept at most: connections that only answer their peer (to PINGs, say) give back more than they take.
const KEPT_BUFFERS: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// An empty one.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps one that is of no more use, unless it is large or enough are kept.
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
    fn buffers_come_back_empty_and_are_not_hoarded() {
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
