//! The body of a message: its end, and its content for those who want it.
//!
//! Chunked framing is parsed strictly (RFC 9112, 7.1): a size without digits is malformed, and a bare line feed ends a line
//! in responses only (2.2).

use crate::fields::Message;

/// Maximum size of the extensions of one chunk, and of all trailers together.
const MAX_LINE_BYTES: u32 = 64 * 1024;
/// Maximum number of digits of a chunk's size, leading zeros included.
const MAX_SIZE_DIGITS: u8 = 64;

/// The remaining part of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Body {
    stage: Stage,
    bare_line_feeds: bool,
}

/// Fault of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyError {
    /// Its chunks are.
    Chunks,
    /// Its trailers are over 64 KiB.
    Trailers,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Done,
    /// Content-Length: this many bytes are left.
    Sized(u64),
    /// The body ends with its connection.
    UntilEnd,
    /// In the digits of a chunk size.
    Size {
        bytes: u64,
        digits: u8,
    },
    /// In the extensions after the size, and how many bytes of them were read.
    Extension {
        bytes: u64,
        read: u32,
    },
    /// Before the line feed that ends the size line.
    SizeEnd {
        bytes: u64,
    },
    /// In the data of a chunk.
    Data {
        bytes: u64,
    },
    DataReturn,
    DataEnd,
    /// At the start of a line after the last chunk.
    TrailerStart {
        read: u32,
    },
    /// Within a trailer line.
    Trailer {
        read: u32,
    },
    /// Before the line feed that ends a trailer line.
    TrailerEnd {
        read: u32,
    },
    /// Before the final line feed.
    End,
}

impl Body {
    /// A body of this many bytes.
    pub(crate) fn sized(bytes: u64) -> Self {
        Self::new(if bytes == 0 { Stage::Done } else { Stage::Sized(bytes) }, Message::Request)
    }

    /// A chunked body of this kind of message.
    pub(crate) fn chunked(message: Message) -> Self {
        Self::new(Stage::Size { bytes: 0, digits: 0 }, message)
    }

    /// A body that ends with its connection.
    pub(crate) fn until_end() -> Self {
        Self::new(Stage::UntilEnd, Message::Response)
    }

    fn new(stage: Stage, message: Message) -> Self {
        Self { stage, bare_line_feeds: message == Message::Response }
    }

    /// True if the body is complete.
    #[must_use]
    pub fn is_done(self) -> bool {
        self.stage == Stage::Done
    }

    pub(crate) fn is_until_end(self) -> bool {
        self.stage == Stage::UntilEnd
    }

    /// Consumes the body's part of `input` from its start, and returns its length.
    ///
    /// # Errors
    /// Returns an error if the body is chunked and malformed.
    pub fn discard(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        self.read(input, |_| {})
    }

    /// As [`Self::discard`], but passes on the content without its framing, in pieces.
    ///
    /// # Errors
    /// Returns an error if the body is chunked and malformed.
    pub fn read(&mut self, input: &[u8], mut content: impl FnMut(&[u8])) -> Result<usize, BodyError> {
        let mut at = 0;
        while at < input.len() && !self.is_done() {
            match &mut self.stage {
                Stage::UntilEnd => {
                    content(&input[at..]);
                    at = input.len();
                }
                Stage::Sized(bytes) | Stage::Data { bytes } => {
                    let taken = usize::try_from(*bytes).unwrap_or(usize::MAX).min(input.len() - at);
                    content(&input[at..at + taken]);
                    at += taken;
                    *bytes -= taken as u64;
                    match self.stage {
                        Stage::Sized(0) => self.stage = Stage::Done,
                        Stage::Data { bytes: 0 } => self.stage = Stage::DataReturn,
                        _ => {}
                    }
                }
                _ => {
                    self.advance(input[at])?;
                    at += 1;
                }
            }
        }
        Ok(at)
    }

    /// Consumes a byte of framing.
    fn advance(&mut self, byte: u8) -> Result<(), BodyError> {
        if self.bare_line_feeds && byte == b'\n' {
            // It also stands for the carriage return that is missing.
            self.stage = after(self.stage, b'\r').unwrap_or(self.stage);
        }
        self.stage = after(self.stage, byte)?;
        Ok(())
    }
}

/// The stage after this byte of framing.
fn after(stage: Stage, byte: u8) -> Result<Stage, BodyError> {
    Ok(match (stage, byte) {
        (Stage::Size { bytes, digits }, _) if byte.is_ascii_hexdigit() => {
            let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
            // Sizes of up to 60 bits never overflow. Some servers write leading zeros.
            if digits == MAX_SIZE_DIGITS || bytes >> 56 != 0 {
                return Err(BodyError::Chunks);
            }
            Stage::Size { bytes: bytes * 16 + digit, digits: digits + 1 }
        }
        (Stage::Size { digits: 0, .. }, _) => return Err(BodyError::Chunks),
        (Stage::Size { bytes, .. } | Stage::Extension { bytes, .. }, b'\r') => Stage::SizeEnd { bytes },
        (Stage::Size { bytes, .. }, b';' | b' ' | b'\t') => Stage::Extension { bytes, read: 1 },
        (Stage::Extension { bytes, read }, _) if byte != b'\n' && read < MAX_LINE_BYTES => {
            Stage::Extension { bytes, read: read + 1 }
        }
        (Stage::SizeEnd { bytes: 0 }, b'\n') => Stage::TrailerStart { read: 0 },
        (Stage::SizeEnd { bytes }, b'\n') => Stage::Data { bytes },
        (Stage::DataReturn, b'\r') => Stage::DataEnd,
        (Stage::DataEnd, b'\n') => Stage::Size { bytes: 0, digits: 0 },
        (Stage::TrailerStart { .. }, b'\r') => Stage::End,
        (Stage::Trailer { read }, b'\r') => Stage::TrailerEnd { read },
        (Stage::TrailerStart { read: MAX_LINE_BYTES } | Stage::Trailer { read: MAX_LINE_BYTES }, _) => {
            return Err(BodyError::Trailers);
        }
        (Stage::TrailerStart { read } | Stage::Trailer { read }, _) if byte != b'\n' => {
            Stage::Trailer { read: read + 1 }
        }
        (Stage::TrailerEnd { read }, b'\n') => Stage::TrailerStart { read },
        (Stage::End, b'\n') => Stage::Done,
        _ => return Err(BodyError::Chunks),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length_of(mut body: Body, input: &[u8]) -> Result<Option<usize>, BodyError> {
        let taken = body.discard(input)?;
        Ok(body.is_done().then_some(taken))
    }

    #[test]
    fn end_of_body_is_found() {
        assert_eq!(length_of(Body::sized(0), b"GET"), Ok(Some(0)));
        assert_eq!(length_of(Body::sized(3), b"abcGET"), Ok(Some(3)));
        assert_eq!(length_of(Body::sized(7), b"abcGET"), Ok(None));
        for (input, length) in [
            ("0\r\n\r\nGET", Some(5)),
            ("3\r\nabc\r\n0\r\n\r\nGET", Some(13)),
            ("00A;name=\"value\"\r\n0123456789\r\n0 \r\nTrailer: x\r\n\r\n", Some(48)),
            ("3\r\nabc\r\n0\r\n\r", None),
        ] {
            assert_eq!(length_of(Body::chunked(Message::Request), input.as_bytes()), Ok(length), "{input:?}");
        }
    }

    #[test]
    fn content_is_passed_on_without_framing_in_any_pieces() {
        for (body, input) in [
            (Body::sized(9), "data: x\n\nGET"),
            (Body::chunked(Message::Response), "3;a\r\ndat\r\n6\na: x\n\n\r\n0\r\nt: u\r\n\r\nGET"),
            (Body::until_end(), "data: x\n\n"),
        ] {
            for piece in 1..=input.len() {
                let (mut body, mut content) = (body, Vec::new());
                for bytes in input.as_bytes().chunks(piece) {
                    body.read(bytes, |bytes| content.extend_from_slice(bytes)).unwrap();
                }
                assert_eq!(content, b"data: x\n\n", "{input:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn malformed_chunks_are_rejected() {
        for input in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "3\nabc",
            "3\r\nabcd",
            "3\r\nabc\n",
            "3;a\nb\r\n",
            "0\r\nTrailer: x\n",
            "1000000000000000\r\n",
        ] {
            assert!(length_of(Body::chunked(Message::Request), input.as_bytes()).is_err(), "{input:?}");
        }
        let endless = format!("3;{}", "x".repeat(70_000));
        assert!(length_of(Body::chunked(Message::Request), endless.as_bytes()).is_err());
    }

    #[test]
    fn line_feeds_alone_end_lines_of_responses() {
        let input = b"003;x\nabc\n0\nTrailer: x\n\nHTTP";
        assert_eq!(length_of(Body::chunked(Message::Response), input), Ok(Some(24)));
        assert_eq!(length_of(Body::chunked(Message::Request), input), Err(BodyError::Chunks));
        let endless = format!("0\r\nx: {}", "y".repeat(70_000));
        let endless = length_of(Body::chunked(Message::Response), endless.as_bytes());
        assert_eq!(endless, Err(BodyError::Trailers));
        assert_eq!(length_of(Body::until_end(), b"abc"), Ok(None));
    }
}
