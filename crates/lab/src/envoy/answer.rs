//! A long answer read as it comes.

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use std::io::{self, Read};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long all pieces of a long answer may take: the longest takes a minute.
const WHOLE_ANSWER_LIMIT: Duration = Duration::from_secs(300);

/// The body of an answer. Reading ends with an error where the next piece does not come in time.
#[derive(Debug)]
pub(super) struct LongAnswer<'a> {
    runtime: &'a Runtime,
    body: Incoming,
    piece: Bytes,
    /// For each piece.
    limit: Duration,
    /// For all.
    deadline: Instant,
    at_most_bytes: u64,
    read_bytes: u64,
}

impl<'a> LongAnswer<'a> {
    /// The answer with this body, whose connection lives on this runtime.
    pub fn new(runtime: &'a Runtime, body: Incoming, limit: Duration, at_most_bytes: u64) -> Self {
        let deadline = Instant::now() + WHOLE_ANSWER_LIMIT;
        Self { runtime, body, piece: Bytes::new(), limit, deadline, at_most_bytes, read_bytes: 0 }
    }

    /// The next piece that is not empty; nothing at the end.
    fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let limit = self.limit.min(self.deadline.saturating_duration_since(Instant::now()));
            let frame = self
                .runtime
                .block_on(async { tokio::time::timeout(limit, self.body.frame()).await })
                .map_err(|_| {
                    io::Error::new(io::ErrorKind::TimedOut, "the next piece did not come in time")
                })?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(io::Error::other(error)),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    _ => {}
                },
            }
        }
    }
}

impl Read for LongAnswer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            let Some(piece) = self.next_piece()? else { return Ok(0) };
            self.read_bytes += piece.len() as u64;
            if self.read_bytes > self.at_most_bytes {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("it is longer than {} bytes", self.at_most_bytes),
                ));
            }
            self.piece = piece;
        }
        let length = self.piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
