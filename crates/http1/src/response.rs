//! Responses: read to their end, from bytes split at any positions. Only the content of streams of events is passed on, and that of
//! responses for which it is asked.

mod head;
mod recent;

use crate::body::BodyError;
use head::Head;
use recent::RecentHead;

/// Heads up to this size are parsed again with each piece that arrives.
const SHORT_HEAD_BYTES: usize = 1024;

/// Fault of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// The head is malformed.
    #[error("{0}")]
    Syntax(httparse::Error),
    /// It has more than 4096 header fields.
    #[error("too many headers")]
    TooManyHeaders,
    /// A header field that frames the response is invalid.
    #[error("{0}")]
    Fields(&'static str),
    /// The status is out of range, or switches to a protocol that was not requested.
    #[error("invalid response status")]
    Status,
    /// The head is longer than the client allows, in bytes.
    #[error("its head is over {} KiB", .0 / 1024)]
    HeadTooLarge(usize),
    /// The body is malformed.
    #[error("its chunks are malformed")]
    Body(BodyError),
    /// The server speaks TLS.
    #[error("invalid HTTP version")]
    Tls,
    /// The connection has ended within the response.
    #[error("it is incomplete")]
    Truncated,
}

/// A complete response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Response {
    /// Its status code.
    pub status: u16,
    /// Its size in bytes, including interim responses.
    pub bytes: u64,
    /// True if the connection may carry another request.
    pub reusable: bool,
}

/// Finds the end of each response on a connection. Buffers a head only while it is incomplete, and never a body.
#[derive(Debug)]
pub struct ResponseParser {
    max_head_bytes: usize,
    head_only: bool,
    /// The head of a response whose body is being received.
    head: Option<Head>,
    /// Bytes of the response consumed so far, including interim responses.
    bytes: u64,
    /// The received part of a head that came in pieces.
    partial_head: Vec<u8>,
    recent_head: Option<RecentHead>,
    /// All content is passed on, and the head is kept.
    keeps: bool,
    kept_head: Vec<u8>,
}

impl ResponseParser {
    /// A parser for responses to requests other than `HEAD`, with heads of at most this size.
    #[must_use]
    pub fn new(max_head_bytes: usize) -> Self {
        Self {
            max_head_bytes,
            head_only: false,
            head: None,
            bytes: 0,
            partial_head: Vec::new(),
            recent_head: None,
            keeps: false,
            kept_head: Vec::new(),
        }
    }

    /// The parser of a connection with many responses: recognizes heads that repeat.
    #[must_use]
    pub fn for_many(max_head_bytes: usize) -> Self {
        Self { recent_head: Some(RecentHead::default()), ..Self::new(max_head_bytes) }
    }

    /// Resets the parser for the next response. `head_only`: it has no body because the method is `HEAD`.
    pub fn begin(&mut self, head_only: bool) {
        self.head_only = head_only;
        self.keeps = false;
        self.reset();
    }

    /// Until the next [`Self::begin`], [`Self::receive_part`] passes on the content of any response, and its head is kept.
    pub fn keep(&mut self) {
        self.keeps = true;
    }

    /// Calls `field` for each field of the kept head, in order.
    pub fn kept_fields(&self, mut field: impl FnMut(&[u8], &[u8])) {
        if self.keeps {
            head::fields(&self.kept_head, &mut field);
        }
    }

    fn reset(&mut self) {
        self.head = None;
        self.bytes = 0;
        self.partial_head.clear();
    }

    /// True if a part of the response was received.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.bytes > 0
    }

    /// True while the body of a stream of events is being received.
    #[must_use]
    pub fn is_event_stream(&self) -> bool {
        self.head.is_some_and(|head| head.event_stream)
    }

    /// Consumes bytes up to the end of the response; returns how many were consumed. Interim responses
    /// (status 1xx) are skipped.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an HTTP/1.1 response, or if its head is too large.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(usize, Option<Response>), Invalid> {
        let (taken, response) = self.receive_part(bytes, &mut |_| {})?;
        if response.is_some() || taken == bytes.len() {
            return Ok((taken, response));
        }
        let (rest, response) = self.receive_part(&bytes[taken..], &mut |_| {})?;
        Ok((taken + rest, response))
    }

    /// As [`Self::receive`], but passes on the content of a stream of events, and with [`Self::keep`] of any response. Returns before
    /// that of a stream with what follows the head unread: [`Self::is_event_stream`] is true from then on.
    ///
    /// # Errors
    /// As for [`Self::receive`].
    pub fn receive_part(
        &mut self,
        bytes: &[u8],
        content: &mut dyn FnMut(&[u8]),
    ) -> Result<(usize, Option<Response>), Invalid> {
        let mut taken = 0;
        while self.head.is_none() {
            let rest = &bytes[taken..];
            let Some((length, head)) = self.receive_head(rest)? else {
                self.bytes += rest.len() as u64;
                return Ok((bytes.len(), None));
            };
            self.bytes += length as u64;
            taken += length;
            match head.status {
                // 101 would switch protocols, which was not requested.
                101 => return Err(Invalid::Status),
                100..200 => {}
                _ => {
                    self.head = Some(head);
                    if head.event_stream && !head.body.is_done() {
                        return Ok((taken, None));
                    }
                }
            }
        }
        let Some(head) = &mut self.head else { return Ok((taken, None)) };
        let rest = &bytes[taken..];
        let is_passed_on = head.event_stream || self.keeps;
        let length = if is_passed_on { head.body.read(rest, content) } else { head.body.discard(rest) };
        let length = length.map_err(Invalid::Body)?;
        let head = *head;
        self.bytes += length as u64;
        Ok((taken + length, head.body.is_done().then(|| self.ended(head))))
    }

    /// Consumes bytes up to the end of the head that answers a request for another protocol, and returns how many, with its status.
    /// Status 101 is such an answer here. The head is kept, and what follows it is not read.
    ///
    /// # Errors
    /// As for [`Self::receive`].
    pub fn receive_switch(&mut self, bytes: &[u8]) -> Result<(usize, Option<u16>), Invalid> {
        self.keeps = true;
        let mut taken = 0;
        while let Some((length, head)) = self.receive_head(&bytes[taken..])? {
            taken += length;
            if head.status == 101 || head.status >= 200 {
                return Ok((taken, Some(head.status)));
            }
        }
        Ok((bytes.len(), None))
    }

    /// The connection has ended. This completes a response framed by the end of the connection, and is fine
    /// between responses.
    ///
    /// # Errors
    /// Returns an error if a response has begun and is incomplete.
    pub fn end(&mut self) -> Result<Option<Response>, Invalid> {
        match self.head {
            Some(head) if head.body.is_until_end() => Ok(Some(self.ended(head))),
            None if self.partial_head.is_empty() => Ok(None),
            _ => Err(Invalid::Truncated),
        }
    }

    fn ended(&mut self, head: Head) -> Response {
        let response = Response { status: head.status, bytes: self.bytes, reusable: head.keep_alive };
        self.reset();
        response
    }

    /// Returns the head once it is complete, and how many of `bytes` belong to it.
    fn receive_head(&mut self, bytes: &[u8]) -> Result<Option<(usize, Head)>, Invalid> {
        if self.partial_head.is_empty() {
            if let Some(recent) = &self.recent_head
                && let Some(same) = recent.find(bytes, self.head_only)
            {
                if self.keeps {
                    bytes[..same.0].clone_into(&mut self.kept_head);
                }
                return Ok(Some(same));
            }
            let parsed = self.parse(bytes)?;
            if let (true, Some((length, _))) = (self.keeps, &parsed) {
                bytes[..*length].clone_into(&mut self.kept_head);
            }
            match (&parsed, &mut self.recent_head) {
                (None, _) => self.partial_head.extend_from_slice(bytes),
                (Some((length, head)), Some(recent)) => {
                    recent.keep(&bytes[..*length], *head, self.head_only);
                }
                (Some(_), None) => {}
            }
            return Ok(parsed);
        }
        let before = self.partial_head.len();
        self.partial_head.extend_from_slice(bytes);
        // A long head in small pieces would be parsed again for each: wait for the blank line at its end. A
        // short one is parsed each time, so that garbage is reported at once.
        if (SHORT_HEAD_BYTES + 1..self.max_head_bytes).contains(&self.partial_head.len())
            && !ends_head(&self.partial_head, before)
        {
            return Ok(None);
        }
        let Some((length, head)) = self.parse(&self.partial_head)? else { return Ok(None) };
        if self.keeps {
            self.partial_head[..length].clone_into(&mut self.kept_head);
        }
        self.partial_head.clear();
        Ok(Some((length.saturating_sub(before), head)))
    }

    fn parse(&self, bytes: &[u8]) -> Result<Option<(usize, Head)>, Invalid> {
        let parsed = head::parse(bytes, self.head_only)?;
        if parsed
            .as_ref()
            .map_or(bytes.len() >= self.max_head_bytes, |(length, _)| *length > self.max_head_bytes)
        {
            return Err(Invalid::HeadTooLarge(self.max_head_bytes));
        }
        Ok(parsed)
    }
}

/// True if a blank line ends at or after `from`.
fn ends_head(bytes: &[u8], from: usize) -> bool {
    let tail = &bytes[from.saturating_sub(2)..];
    tail.windows(2).any(|pair| pair == b"\n\n") || tail.windows(3).any(|three| three == b"\n\r\n")
}
