//! A connection whose writes are watched: when bytes with a mark were sent, and how many bytes were sent in total.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Prefix of a mark, followed by [`MARK_DIGITS`] digits.
pub const MARK_PREFIX: &str = "meshmeter-mark-";
/// Number of digits of a mark.
pub const MARK_DIGITS: usize = 8;

/// Maximum size of writes that are searched for marks: larger ones contain a whole configuration.
const MAX_SEARCHED_BYTES: usize = 8 * 1024;

/// Text of the mark with this number.
#[must_use]
pub fn mark(number: u32) -> String {
    format!("{MARK_PREFIX}{number:0MARK_DIGITS$}")
}

/// A write of bytes that contain a mark.
#[derive(Clone, Debug)]
pub struct MarkWrite {
    /// Node id of the client.
    pub node: String,
    /// Number of the mark.
    pub mark: u32,
    /// Time before the bytes were passed to the kernel.
    pub before: Instant,
    /// Time after the kernel had accepted them.
    pub after: Instant,
}

/// Logged writes of all connections.
#[derive(Debug, Default)]
pub(crate) struct WriteLog(Mutex<Vec<MarkWrite>>);

impl WriteLog {
    pub fn take(&self) -> Vec<MarkWrite> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, write: MarkWrite) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(write);
    }
}

/// A byte stream whose writes are watched.
pub(crate) struct Watched<T> {
    inner: T,
    /// Log for marks; absent if they are not logged.
    log: Option<Arc<WriteLog>>,
    /// Node id of the client, once known.
    node: Arc<OnceLock<String>>,
    /// Number of bytes that may still be written.
    left: usize,
}

impl<T> Watched<T> {
    pub fn new(inner: T, log: Option<Arc<WriteLog>>, node: Arc<OnceLock<String>>, max_bytes: usize) -> Self {
        Self { inner, log, node, left: max_bytes }
    }

    /// Logs the marks in the bytes written.
    fn written(&mut self, parts: &[io::IoSlice<'_>], bytes: usize, before: Instant) {
        self.left -= bytes;
        let Some(log) = self.log.as_ref().filter(|_| bytes <= MAX_SEARCHED_BYTES) else { return };
        let after = Instant::now();
        let mut written = parts.iter().flat_map(|part| part.iter().copied()).collect::<Vec<u8>>();
        written.truncate(bytes);
        let node = self.node.get().cloned().unwrap_or_default();
        for mark in marks(&written) {
            log.push(MarkWrite { node: node.clone(), mark, before, after });
        }
    }
}

/// Numbers of the marks in these bytes.
fn marks(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let starts = (0..bytes.len()).filter(|start| bytes[*start..].starts_with(MARK_PREFIX.as_bytes()));
    starts.filter_map(|start| {
        let digits = bytes.get(start + MARK_PREFIX.len()..)?.get(..MARK_DIGITS)?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    })
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.left == 0 {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let before = Instant::now();
        let bytes = if total > self.left {
            let part = parts.iter().find(|part| !part.is_empty()).map_or(&[][..], |part| part);
            let end = part.len().min(self.left);
            ready!(Pin::new(&mut self.inner).poll_write(context, &part[..end]))?
        } else {
            ready!(Pin::new(&mut self.inner).poll_write_vectored(context, parts))?
        };
        self.written(parts, bytes, before);
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
