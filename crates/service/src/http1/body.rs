//! The body of a request, read and discarded: only its end matters.
//!
//! Chunked framing is parsed strictly (RFC 9112, 7.1): a bare line feed or a size without digits is rejected.
//! Proxies and servers that guess differently are how requests are smuggled.

use super::request::Rejection;

/// Maximum size of the extensions of one chunk, and of all trailers together.
const MAX_LINE_BYTES: u32 = 64 * 1024;

/// The remaining part of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Body(Stage);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Done,
    /// Content-Length: this many bytes are left.
    Sized(u64),
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
        Self(if bytes == 0 { Stage::Done } else { Stage::Sized(bytes) })
    }

    /// A chunked body.
    pub(crate) fn chunked() -> Self {
        Self(Stage::Size { bytes: 0, digits: 0 })
    }

    /// True if the body is complete.
    pub(crate) fn is_done(self) -> bool {
        self.0 == Stage::Done
    }

    /// Consumes the body's part of `input` from its start, and returns its length.
    pub(crate) fn discard(&mut self, input: &[u8]) -> Result<usize, Rejection> {
        let mut at = 0;
        while at < input.len() && !self.is_done() {
            if let Stage::Sized(bytes) | Stage::Data { bytes } = &mut self.0 {
                let taken = usize::try_from(*bytes).unwrap_or(usize::MAX).min(input.len() - at);
                at += taken;
                *bytes -= taken as u64;
                match self.0 {
                    Stage::Sized(0) => self.0 = Stage::Done,
                    Stage::Data { bytes: 0 } => self.0 = Stage::DataReturn,
                    _ => {}
                }
            } else {
                self.0 = after(self.0, input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }
}

/// The stage after this byte of framing.
fn after(stage: Stage, byte: u8) -> Result<Stage, Rejection> {
    let broken = Rejection { status: 400, reason: "the chunks of the request's body are malformed" };
    Ok(match (stage, byte) {
        (Stage::Size { bytes, digits }, _) if byte.is_ascii_hexdigit() => {
            let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
            // 15 digits are more than 10^15 bytes and never overflow.
            if digits == 15 {
                return Err(broken);
            }
            Stage::Size { bytes: bytes * 16 + digit, digits: digits + 1 }
        }
        (Stage::Size { digits: 0, .. }, _) => return Err(broken),
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
        (Stage::TrailerStart { read } | Stage::Trailer { read }, _)
            if byte != b'\n' && read < MAX_LINE_BYTES =>
        {
            Stage::Trailer { read: read + 1 }
        }
        (Stage::TrailerEnd { read }, b'\n') => Stage::TrailerStart { read },
        (Stage::End, b'\n') => Stage::Done,
        _ => return Err(broken),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length_of(mut body: Body, input: &[u8]) -> Result<Option<usize>, Rejection> {
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
            assert_eq!(length_of(Body::chunked(), input.as_bytes()), Ok(length), "{input:?}");
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
            assert!(length_of(Body::chunked(), input.as_bytes()).is_err(), "{input:?}");
        }
        let endless = format!("3;{}", "x".repeat(70_000));
        assert!(length_of(Body::chunked(), endless.as_bytes()).is_err());
    }
}
