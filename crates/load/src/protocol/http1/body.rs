//! The body of a response: read to its end and discarded.

use super::super::ProtocolError;
use crate::error::ErrorKind;

/// How the end of a body is determined.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Framing {
    /// By a length in bytes.
    Length(u64),
    /// Chunked, ending with a chunk of size 0.
    Chunked,
    /// By the end of the connection.
    UntilEnd,
}

/// Maximum length of a line in a chunked body (chunk size with extensions, or trailer field).
const MAX_LINE_BYTES: usize = 16 * 1024;
/// Maximum size of the trailer fields, bytes.
const MAX_TRAILER_BYTES: usize = 64 * 1024;

/// A body that is being read.
#[derive(Debug)]
pub(super) enum Body {
    Length { remaining: u64 },
    Chunked(Chunks),
    UntilEnd,
}

impl Body {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(remaining) => Self::Length { remaining },
            Framing::Chunked => Self::Chunked(Chunks::default()),
            Framing::UntilEnd => Self::UntilEnd,
        }
    }

    /// Consumes bytes; returns how many, and whether the body ends with them.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<(usize, bool), ProtocolError> {
        match self {
            Self::Length { remaining } => {
                let taken = usize::try_from(*remaining).unwrap_or(usize::MAX).min(bytes.len());
                *remaining -= taken as u64;
                Ok((taken, *remaining == 0))
            }
            Self::Chunked(chunks) => chunks.receive(bytes),
            Self::UntilEnd => Ok((bytes.len(), false)),
        }
    }
}

/// A chunked body (RFC 9112, section 7.1).
#[derive(Debug, Default)]
pub(super) struct Chunks {
    state: ChunkState,
    /// The received part of the current line.
    line: Vec<u8>,
    trailer_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum ChunkState {
    #[default]
    Size,
    Data {
        remaining: u64,
    },
    /// The line end that closes a chunk's data.
    DataEnd,
    Trailers,
}

impl Chunks {
    fn receive(&mut self, bytes: &[u8]) -> Result<(usize, bool), ProtocolError> {
        let mut taken = 0;
        while taken < bytes.len() {
            if let ChunkState::Data { remaining } = &mut self.state {
                let step = usize::try_from(*remaining).unwrap_or(usize::MAX).min(bytes.len() - taken);
                *remaining -= step as u64;
                taken += step;
                if *remaining == 0 {
                    self.state = ChunkState::DataEnd;
                }
                continue;
            }
            let (step, whole) = self.take_line(&bytes[taken..])?;
            taken += step;
            if whole && self.line_ended()? {
                return Ok((taken, true));
            }
        }
        Ok((taken, false))
    }

    /// Consumes bytes up to and including a line feed.
    fn take_line(&mut self, bytes: &[u8]) -> Result<(usize, bool), ProtocolError> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let step = end.map_or(bytes.len(), |position| position + 1);
        if self.line.len() + step > MAX_LINE_BYTES {
            return Err(ProtocolError(ErrorKind::MalformedResponse));
        }
        self.line.extend_from_slice(&bytes[..step]);
        Ok((step, end.is_some()))
    }

    /// A line is complete. Returns true if the body ends with it.
    fn line_ended(&mut self) -> Result<bool, ProtocolError> {
        let line = self.line.trim_ascii_end();
        let malformed = ProtocolError(ErrorKind::MalformedResponse);
        let mut ended = false;
        self.state = match self.state {
            ChunkState::Size => match parse_chunk_size(line).ok_or(malformed)? {
                0 => ChunkState::Trailers,
                remaining => ChunkState::Data { remaining },
            },
            ChunkState::DataEnd if line.is_empty() => ChunkState::Size,
            ChunkState::Trailers => {
                self.trailer_bytes += self.line.len();
                ended = line.is_empty();
                if self.trailer_bytes > MAX_TRAILER_BYTES {
                    return Err(ProtocolError(ErrorKind::HeadTooLarge));
                }
                ChunkState::Trailers
            }
            ChunkState::DataEnd | ChunkState::Data { .. } => return Err(malformed),
        };
        self.line.clear();
        Ok(ended)
    }
}

/// Parses the hexadecimal size at the start of a chunk; the extensions after it are skipped.
fn parse_chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    let text = std::str::from_utf8(digits).ok()?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(text, 16).ok()
}
