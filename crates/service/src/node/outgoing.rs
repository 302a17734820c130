//! An outgoing HTTP/1.1 message: its head, and a filler body.

use super::stream::CountedStream;
use crate::response::{FILLER, FILLER_BYTES};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite as _;

/// Maximum slices of filler sent in one call.
const MAX_SLICES: usize = 16;

/// A message being written to a connection.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    head: Vec<u8>,
    /// Bytes of `head` that the connection has accepted.
    head_sent: usize,
    filler_at: usize,
    filler_left: u64,
}

impl Outgoing {
    /// Starts a message; its head must be written to the returned buffer.
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.head.clear();
        self.head_sent = 0;
        self.filler_left = 0;
        &mut self.head
    }

    /// Adds this much filler after the head.
    pub(crate) fn fill(&mut self, bytes: u64) {
        self.filler_at = 0;
        self.filler_left = bytes;
    }

    /// True if the connection has accepted any of it.
    pub(crate) fn is_begun(&self) -> bool {
        self.head_sent > 0
    }

    pub(crate) fn is_done(&self) -> bool {
        self.head_sent == self.head.len() && self.filler_left == 0
    }

    /// Writes until the whole message is written.
    pub(crate) fn poll_send(
        &mut self,
        stream: &mut CountedStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_done() {
            match ready!(self.poll_write(stream, context))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.advance(written),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(&self, stream: &mut CountedStream, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let head = &self.head[self.head_sent..];
        if self.filler_left == 0 {
            return Pin::new(stream).poll_write(context, head);
        }
        let mut slices = [IoSlice::new(head); 1 + MAX_SLICES];
        let (mut used, mut from, mut left) = (1, self.filler_at, self.filler_left);
        while left > 0 && used < slices.len() {
            let length = (FILLER_BYTES - from).min(usize::try_from(left).unwrap_or(usize::MAX));
            slices[used] = IoSlice::new(&FILLER[from..from + length]);
            used += 1;
            left -= length as u64;
            from = 0;
        }
        Pin::new(stream).poll_write_vectored(context, &slices[..used])
    }

    fn advance(&mut self, written: usize) {
        let of_head = written.min(self.head.len() - self.head_sent);
        self.head_sent += of_head;
        let of_filler = written - of_head;
        self.filler_at = (self.filler_at + of_filler) % FILLER_BYTES;
        self.filler_left -= of_filler as u64;
    }
}
