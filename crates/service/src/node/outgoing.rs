//! An outgoing message: a head, and filler.

use super::stream::CountedStream;
use crate::content::Filler;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite as _;

/// A message being written to a connection.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    head: Vec<u8>,
    /// Bytes of `head` that the connection has accepted.
    head_sent: usize,
    filler: Filler,
}

impl Outgoing {
    /// A message without a head.
    pub(crate) fn new(filler: Filler) -> Self {
        Self { filler, ..Self::default() }
    }

    /// Starts a message; its head must be written to the returned buffer.
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.head.clear();
        self.head_sent = 0;
        self.filler = Filler::default();
        &mut self.head
    }

    /// Adds this much filler after the head.
    pub(crate) fn fill(&mut self, bytes: u64) {
        self.filler = self.filler.again(bytes);
    }

    /// True if the connection has accepted any of it.
    pub(crate) fn is_begun(&self) -> bool {
        self.head_sent > 0
    }

    pub(crate) fn is_done(&self) -> bool {
        self.head_sent == self.head.len() && self.filler.bytes() == 0
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
                written => self.head_sent += self.filler.sent_after(&self.head[self.head_sent..], written),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(&self, stream: &mut CountedStream, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let head = &self.head[self.head_sent..];
        if self.filler.bytes() == 0 {
            return Pin::new(stream).poll_write(context, head);
        }
        let (slices, used) = self.filler.slices(head);
        Pin::new(stream).poll_write_vectored(context, &slices[..used])
    }
}
