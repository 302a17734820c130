//! The bytes of an HTTP/2 connection, as read and written by the library. Nothing here waits or wakes.
//!
//! The library flushes after each frame, so its output is collected and sent at the end of the turn. The
//! buffer for that is shared by all connections of a worker; one keeps it only while its socket accepts no
//! more.

use super::context::Context as Worker;
use crate::transport::Transport;
use rustix::io::{self, Errno};
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Collected bytes above which the socket has to accept some first.
const MAX_UNSENT_BYTES: usize = 64 * 1024;
/// Maximum bytes read in one turn, after which other connections get theirs.
const READ_PER_TURN_BYTES: usize = 256 * 1024;

/// The bytes of a connection: the worker holds one end, the library the other.
#[derive(Clone, Debug)]
pub(super) struct Channel(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    transport: Transport,
    /// Received before the connection was known to be HTTP/2.
    received: Vec<u8>,
    unsent: Vec<u8>,
    /// Bytes of `unsent` that the transport has accepted.
    sent: usize,
    /// Bytes that may still be read in this turn.
    budget: usize,
    /// The library waits for permission to write.
    is_writer_waiting: bool,
    worker: Arc<Worker>,
}

impl Channel {
    pub(super) fn new(transport: Transport, received: Vec<u8>, worker: &Arc<Worker>) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            transport,
            received,
            unsent: Vec::new(),
            sent: 0,
            budget: 0,
            is_writer_waiting: false,
            worker: Arc::clone(worker),
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the socket is readable.
    pub(super) fn has_input(&self, half_closed: bool) {
        self.inner().transport.has_input(half_closed);
    }

    /// Starts a turn: reading may continue.
    pub(super) fn begin_turn(&self) {
        self.inner().budget = READ_PER_TURN_BYTES;
    }

    /// Sends collected output as far as the socket accepts it. Returns true if the library may continue
    /// because of that.
    pub(super) fn send(&self) -> io::Result<bool> {
        let inner = &mut *self.inner();
        match inner.send() {
            Ok(()) => Ok(std::mem::take(&mut inner.is_writer_waiting)),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// True if reading stopped to give other connections their turn.
    pub(super) fn has_more_to_read(&self) -> bool {
        let inner = self.inner();
        inner.budget == 0 && inner.transport.is_readable()
    }

    /// Discards the client's remaining input until it ends.
    pub(super) fn poll_end(&self) -> Poll<()> {
        let inner = &mut *self.inner();
        let mut room = Vec::with_capacity(READ_PER_TURN_BYTES / 16);
        match inner.transport.drain(&mut room) {
            Ok(false) => Poll::Pending,
            Ok(true) | Err(_) => Poll::Ready(()),
        }
    }
}

impl Inner {
    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.unsent.len() {
            let length = self.transport.send(&[IoSlice::new(&self.unsent[self.sent..])])?;
            self.worker.tally.bytes_sent.add(length as u64);
            self.sent += length;
        }
        if self.unsent.capacity() > 0 {
            self.worker.give_back(std::mem::take(&mut self.unsent));
            self.sent = 0;
        }
        self.transport.flush()
    }

    fn gather(&mut self, pieces: &[IoSlice<'_>]) -> Poll<std::io::Result<usize>> {
        if self.unsent.len() >= MAX_UNSENT_BYTES {
            match self.send() {
                Ok(()) => {}
                Err(Errno::AGAIN) => {
                    self.is_writer_waiting = true;
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        if self.unsent.capacity() == 0 {
            self.unsent = self.worker.take_room();
        }
        let before = self.unsent.len();
        for piece in pieces {
            self.unsent.extend_from_slice(piece);
        }
        Poll::Ready(Ok(self.unsent.len() - before))
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let inner = &mut *self.inner();
        if !inner.received.is_empty() {
            let length = inner.received.len().min(into.remaining());
            into.put_slice(&inner.received[..length]);
            inner.received.drain(..length);
            return Poll::Ready(Ok(()));
        }
        if inner.budget == 0 || !inner.transport.is_readable() {
            return Poll::Pending;
        }
        match inner.transport.read(into.initialize_unfilled())? {
            None => Poll::Pending,
            Some(length) => {
                into.advance(length);
                inner.budget = inner.budget.saturating_sub(length);
                inner.worker.tally.bytes_received.add(length as u64);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Channel {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.inner().gather(&[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        self.inner().gather(pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Collected output is sent at the end of the turn, and in every further turn until all of it is.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let inner = &mut *self.inner();
        match inner.send().and_then(|()| inner.transport.end_sending()) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(Errno::AGAIN) => {
                inner.is_writer_waiting = true;
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}
