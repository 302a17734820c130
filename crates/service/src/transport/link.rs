//! A non-blocking socket, with the state known from its events.

use rustix::buffer::spare_capacity;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{self, Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use std::io::IoSlice;
use std::os::fd::AsFd as _;

/// A non-blocking socket and its readiness.
#[derive(Debug)]
pub(super) struct Link {
    socket: OwnedFd,
    readable: bool,
    /// The client has closed its sending side.
    half_closed: bool,
}

impl Link {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket, readable: false, half_closed: false }
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn has_input(&mut self, half_closed: bool) {
        self.readable = true;
        self.half_closed |= half_closed;
    }

    pub(super) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Reads once, appending to `into`: the number of bytes, 0 at the end of the stream, `None` if nothing is
    /// available.
    pub(super) fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let room = into.capacity() - into.len();
        let received = retry_on_intr(|| recv(&self.socket, spare_capacity(into), RecvFlags::empty()));
        self.note(received.map(|(length, _)| length), room)
    }

    /// Like [`Self::receive`], but into a slice.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let room = into.len();
        let received = retry_on_intr(|| recv(&self.socket, &mut *into, RecvFlags::empty()));
        self.note(received.map(|(length, _)| length), room)
    }

    fn note(&mut self, received: io::Result<usize>, room: usize) -> io::Result<Option<usize>> {
        match received {
            Ok(length) => {
                // A short read: the socket is drained, and the next byte triggers a new edge (epoll(7)). The
                // end of the stream may have come with these bytes, and then triggers no edge of its own.
                self.readable = length == room || self.half_closed;
                Ok(Some(length))
            }
            Err(Errno::AGAIN) => {
                self.readable = false;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends from the start of `pieces`; returns how many bytes the socket accepted.
    pub(super) fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match pieces {
            [piece] => retry_on_intr(|| send(&self.socket, piece, SendFlags::NOSIGNAL)),
            _ => retry_on_intr(|| {
                sendmsg(&self.socket, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
            }),
        }
    }
}

/// For the TLS library. The socket is only read while it may have data.
impl std::io::Read for Link {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let received = if self.readable { Self::read(self, into)? } else { None };
        received.ok_or_else(|| Errno::AGAIN.into())
    }
}

impl std::io::Write for Link {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.send(&[IoSlice::new(bytes)])?)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> std::io::Result<usize> {
        Ok(self.send(pieces)?)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
