//! Splits bytes that arrive in any pieces into frames.
//!
//! A frame that arrives in one piece is parsed in place. One that arrives in several is buffered until it is
//! complete, at most 16 KiB. The content of DATA frames is passed on as it arrives and never buffered.

use super::violation::Violation;
use http2::frame::{DEFAULT_MAX_FRAME_BYTES, FrameHead, HEAD_BYTES, flag, kind};

/// A piece of input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Piece<'b> {
    /// A complete frame other than DATA.
    Frame(FrameHead, &'b [u8]),
    /// The header of a DATA frame.
    DataHead(FrameHead),
    /// Part of a DATA frame's content, without padding.
    Data(FrameHead, &'b [u8]),
    /// The DATA frame is complete, including padding.
    DataEnd(FrameHead),
}

/// Splits bytes into frames.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    /// An incomplete frame, starting with its header.
    partial: Vec<u8>,
    /// How much of `partial` was handed out.
    handed_out: usize,
    data: Option<DataFrame>,
}

/// A DATA frame that is being read.
#[derive(Clone, Copy, Debug)]
struct DataFrame {
    head: FrameHead,
    /// Unknown until the first byte of a padded frame has arrived.
    padding: Option<usize>,
    /// Bytes still missing, including padding.
    remaining: usize,
}

impl FrameReader {
    pub(super) fn reset(&mut self) {
        self.partial.clear();
        self.handed_out = 0;
        self.data = None;
    }

    /// True if a frame has begun and is incomplete.
    pub(super) fn is_within_frame(&self) -> bool {
        self.data.is_some() || self.partial.len() > self.handed_out
    }

    /// Consumes bytes up to the next piece; all of them if there is none. Fails if a frame is longer than
    /// allowed, or its padding longer than the frame.
    pub(super) fn next<'b>(&'b mut self, bytes: &'b [u8]) -> Result<(usize, Option<Piece<'b>>), Violation> {
        if let Some(data) = &mut self.data {
            let (taken, piece) = data.next(bytes)?;
            if matches!(piece, Some(Piece::DataEnd(_))) {
                self.data = None;
            }
            return Ok((taken, piece));
        }
        if self.handed_out > 0 {
            self.partial.clear();
            self.handed_out = 0;
        }
        if !self.partial.is_empty() {
            return self.next_of_partial(bytes);
        }
        let Some(head) = bytes.first_chunk().map(FrameHead::parse) else { return Ok(self.keep(bytes)) };
        check_length(&head)?;
        if head.kind == kind::DATA {
            return Ok((HEAD_BYTES, Some(self.begin_data(head)?)));
        }
        match bytes.get(HEAD_BYTES..HEAD_BYTES + head.length) {
            Some(payload) => Ok((HEAD_BYTES + head.length, Some(Piece::Frame(head, payload)))),
            None => Ok(self.keep(bytes)),
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> (usize, Option<Piece<'_>>) {
        self.partial.extend_from_slice(bytes);
        (bytes.len(), None)
    }

    fn begin_data(&mut self, head: FrameHead) -> Result<Piece<'static>, Violation> {
        let padding = if head.has(flag::PADDED) { None } else { Some(0) };
        if padding.is_none() && head.length == 0 {
            return Err(Violation::FRAME_SIZE);
        }
        self.data = Some(DataFrame { head, padding, remaining: head.length });
        Ok(Piece::DataHead(head))
    }

    /// Continues a frame that has begun.
    fn next_of_partial(&mut self, bytes: &[u8]) -> Result<(usize, Option<Piece<'_>>), Violation> {
        let for_head = HEAD_BYTES.saturating_sub(self.partial.len()).min(bytes.len());
        self.partial.extend_from_slice(&bytes[..for_head]);
        let Some(head) = self.partial.first_chunk().map(FrameHead::parse) else {
            return Ok((for_head, None));
        };
        check_length(&head)?;
        if head.kind == kind::DATA {
            self.partial.clear();
            return Ok((for_head, Some(self.begin_data(head)?)));
        }
        let rest = &bytes[for_head..];
        let missing = HEAD_BYTES + head.length - self.partial.len();
        let step = missing.min(rest.len());
        self.partial.extend_from_slice(&rest[..step]);
        let taken = for_head + step;
        if step < missing {
            return Ok((taken, None));
        }
        self.handed_out = self.partial.len();
        Ok((taken, Some(Piece::Frame(head, &self.partial[HEAD_BYTES..]))))
    }
}

fn check_length(head: &FrameHead) -> Result<(), Violation> {
    if head.length > DEFAULT_MAX_FRAME_BYTES { Err(Violation::FRAME_SIZE) } else { Ok(()) }
}

impl DataFrame {
    fn next<'b>(&mut self, bytes: &'b [u8]) -> Result<(usize, Option<Piece<'b>>), Violation> {
        let Some(padding) = self.padding else {
            let Some(padding) = bytes.first() else { return Ok((0, None)) };
            // A padded frame has at least one byte: this one.
            self.remaining -= 1;
            let padding = usize::from(*padding);
            if padding > self.remaining {
                return Err(Violation::PROTOCOL);
            }
            self.padding = Some(padding);
            return Ok((1, Some(Piece::Data(self.head, &[]))));
        };
        if self.remaining > padding {
            if bytes.is_empty() {
                return Ok((0, None));
            }
            let step = (self.remaining - padding).min(bytes.len());
            self.remaining -= step;
            return Ok((step, Some(Piece::Data(self.head, &bytes[..step]))));
        }
        let step = self.remaining.min(bytes.len());
        self.remaining -= step;
        Ok((step, (self.remaining == 0).then_some(Piece::DataEnd(self.head))))
    }
}
