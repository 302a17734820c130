//! Pieces of a response that the library has not written yet: few per stream, so that a client that reads none, or has no room left,
//! takes no memory for what would come next.

use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Maximum number of pieces of a stream that wait to be written. The library keeps more per piece than a short event has.
const MAX_WAITING: usize = 4;

/// The pieces of one stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    waiting: usize,
    /// Waits for room.
    waker: Option<Waker>,
}

/// A piece, until the library drops it.
struct Piece {
    bytes: Bytes,
    outbox: Outbox,
}

impl Outbox {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready if there is room for a piece.
    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.inner();
        if inner.waiting < MAX_WAITING {
            return Poll::Ready(());
        }
        inner.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// A piece that waits until it is dropped.
    pub(super) fn put(&self, bytes: Bytes) -> Bytes {
        self.inner().waiting += 1;
        Bytes::from_owner(Piece { bytes, outbox: self.clone() })
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let waker = {
            let mut inner = self.outbox.inner();
            inner.waiting -= 1;
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_again_once_a_piece_is_gone() {
        let (outbox, mut context) = (Outbox::default(), Context::from_waker(Waker::noop()));
        let mut pieces: Vec<Bytes> =
            (0..MAX_WAITING).map(|_| outbox.put(Bytes::from_static(b"event"))).collect();
        assert!(outbox.poll_room(&mut context).is_pending());
        // A part of one still waits.
        let part = pieces.pop().map(|mut piece| piece.split_to(2));
        assert!(outbox.poll_room(&mut context).is_pending());
        drop(part);
        assert!(outbox.poll_room(&mut context).is_ready());
    }
}
