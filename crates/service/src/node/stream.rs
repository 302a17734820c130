//! TCP streams that count their bytes.

use super::tally::{CallTally, WorkerTally};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Read buffer size, bytes.
const RECEIVE_BYTES: usize = 16 * 1024;

/// A connection, accepted or opened to a callee. It counts as open until dropped.
#[derive(Debug)]
pub(crate) struct CountedStream {
    stream: TcpStream,
    tally: Arc<WorkerTally>,
    /// Index of the callee; `None` for an accepted connection.
    callee: Option<usize>,
    /// Received bytes to be read again.
    unread: Vec<u8>,
}

impl CountedStream {
    /// Wraps a connection that the acceptor has already counted.
    pub(crate) fn accepted(stream: TcpStream, tally: Arc<WorkerTally>) -> Self {
        Self { stream, tally, callee: None, unread: Vec::new() }
    }

    pub(crate) fn opened(stream: TcpStream, tally: Arc<WorkerTally>, callee: usize) -> Self {
        let calls = &tally.calls[callee];
        calls.connections.add(1);
        calls.connections_open.fetch_add(1, Relaxed);
        Self { stream, tally, callee: Some(callee), unread: Vec::new() }
    }

    /// True if the peer has closed it or sent unsolicited bytes.
    pub(crate) fn is_stale(&self) -> bool {
        !matches!(self.stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// True if an idle connection is still idle. If so, `context` is woken when that changes.
    pub(crate) fn poll_idle(&self, context: &mut Context<'_>) -> bool {
        // Cached readiness may be outdated after reads: polling clears it and registers for new events.
        self.stream.poll_read_ready(context).is_pending()
            || (!self.is_stale() && self.stream.poll_read_ready(context).is_pending())
    }

    /// Receives once and passes on the bytes: none at the end of the stream.
    pub(crate) fn poll_receive<T>(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        let mut room = [const { MaybeUninit::uninit() }; RECEIVE_BYTES];
        let mut buffer = ReadBuf::uninit(&mut room);
        ready!(Pin::new(self).poll_read(context, &mut buffer))?;
        Poll::Ready(Ok(take(buffer.filled())))
    }

    /// Returns received bytes, to be read again.
    pub(crate) fn give_back(&mut self, received: Vec<u8>) {
        self.unread = received;
    }

    fn calls(&self) -> Option<&CallTally> {
        self.callee.map(|callee| &self.tally.calls[callee])
    }

    fn count_received(&self, bytes: usize) {
        let count = self.calls().map_or(&self.tally.inbound.bytes_received, |calls| &calls.bytes_received);
        count.add(bytes as u64);
    }

    fn count_sent(&self, bytes: usize) {
        let count = self.calls().map_or(&self.tally.inbound.bytes_sent, |calls| &calls.bytes_sent);
        count.add(bytes as u64);
    }
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        let open = self.calls().map_or(&self.tally.inbound.connections_open, |calls| &calls.connections_open);
        open.fetch_sub(1, Relaxed);
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let length = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread[..length]);
            self.unread.drain(..length);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.count_received(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.count_sent(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices))?;
        self.count_sent(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
