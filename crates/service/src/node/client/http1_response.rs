//! An HTTP/1.1 response: read completely and discarded. No I/O.

use crate::http1::{Body, MAX_HEAD_BYTES, MAX_HEADERS, read_fields};
use httparse::{Header, Status};
use std::io;
use std::mem::MaybeUninit;

/// State of a response being received.
#[derive(Debug)]
pub(super) struct Receiver {
    stage: Stage,
    status: u16,
    keeps_alive: bool,
}

#[derive(Debug)]
enum Stage {
    /// The received part of the head.
    Head(Vec<u8>),
    Body(Body),
    /// The response ends with the connection.
    UntilClosed,
    Done,
}

/// Parsed head of a response.
struct Head {
    length: usize,
    status: u16,
    keeps_alive: bool,
    stage: Stage,
}

impl Default for Receiver {
    fn default() -> Self {
        Self { stage: Stage::Head(Vec::new()), status: 0, keeps_alive: false }
    }
}

impl Receiver {
    /// True if any bytes have arrived.
    pub(super) fn is_begun(&self) -> bool {
        !matches!(&self.stage, Stage::Head(held) if held.is_empty() && self.status == 0)
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// True if the connection may carry another request.
    pub(super) fn keeps_alive(&self) -> bool {
        self.keeps_alive
    }

    /// Consumes received bytes; none means the end of the connection.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return match self.stage {
                Stage::UntilClosed => {
                    self.stage = Stage::Done;
                    Ok(())
                }
                Stage::Head(_) if !self.is_begun() => Err(closed("before the response")),
                _ => Err(closed("within the response")),
            };
        }
        if let Stage::Head(held) = &mut self.stage {
            if held.is_empty() {
                return self.receive_head(bytes);
            }
            let mut held = std::mem::take(held);
            held.extend_from_slice(bytes);
            return self.receive_head(&held);
        }
        self.receive_body(bytes)
    }

    fn receive_head(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(head) = parse(bytes)? {
            bytes = &bytes[head.length..];
            self.status = head.status;
            // Informational responses come before the response.
            if !(100..200).contains(&head.status) {
                self.keeps_alive = head.keeps_alive;
                self.stage = head.stage;
                return self.receive_body(bytes);
            }
        }
        self.stage = Stage::Head(bytes.to_vec());
        Ok(())
    }

    fn receive_body(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Stage::Body(body) = &mut self.stage {
            let used = body.discard(bytes).map_err(|_| malformed("its chunks are malformed"))?;
            if body.is_done() {
                self.stage = Stage::Done;
                // Surplus bytes after the response: nothing that follows can be assigned to a request.
                self.keeps_alive &= used == bytes.len();
            }
        }
        Ok(())
    }
}

/// Parses the head at the start of `input`; `None` if it is incomplete.
fn parse(input: &[u8]) -> io::Result<Option<Head>> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let length = match parser.parse_response_with_uninit_headers(&mut parsed, input, &mut headers) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if input.len() < MAX_HEAD_BYTES => return Ok(None),
        Ok(Status::Partial) => return Err(malformed("its head is over 64 KiB")),
        Err(error) => return Err(malformed(error)),
    };
    let fields = read_fields(parsed.headers).map_err(|rejection| malformed(rejection.reason))?;
    let status = parsed.code.unwrap_or(0);
    let stage = match fields.content_length {
        _ if matches!(status, 100..200 | 204 | 304) => Stage::Body(Body::sized(0)),
        _ if fields.chunked => Stage::Body(Body::chunked()),
        Some(length) => Stage::Body(Body::sized(length)),
        None => Stage::UntilClosed,
    };
    let is_1_1 = parsed.version == Some(1);
    let keeps_alive = !fields.close && (is_1_1 || fields.keep_alive) && !matches!(stage, Stage::UntilClosed);
    Ok(Some(Head { length, status, keeps_alive, stage }))
}

fn closed(when: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the connection was closed {when}"))
}

fn malformed(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("this is not a response of HTTP/1.1: {why}"))
}

/// Reads `input` as a response, and checks that how it arrives does not matter. The first byte is the length of pieces. For
/// fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_response(input: &[u8]) {
    let Some((piece, bytes)) = input.split_first() else { return };
    let received = |piece: usize| {
        let mut receiver = Receiver::default();
        for part in bytes.chunks(piece) {
            receiver.receive(part).ok()?;
            if let Stage::Head(held) = &receiver.stage {
                assert!(held.len() < MAX_HEAD_BYTES);
            }
            if receiver.is_done() {
                break;
            }
        }
        Some((receiver.is_done(), receiver.status, receiver.is_begun()))
    };
    assert_eq!(received(bytes.len().max(1)), received(usize::from(*piece) + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, and whether the connection stays open; `None` if the response is incomplete.
    fn received(pieces: &[&[u8]]) -> io::Result<Option<(u16, bool)>> {
        let mut receiver = Receiver::default();
        for piece in pieces {
            assert!(!receiver.is_done(), "{pieces:?}");
            receiver.receive(piece)?;
        }
        Ok(receiver.is_done().then_some((receiver.status, receiver.keeps_alive)))
    }

    const WHOLE: [(&str, u16, bool); 9] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 200, true),
        ("HTTP/1.1 500 \r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", 500, true),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, true),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, true),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            200,
            true,
        ),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 200, false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, false),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", 200, true),
    ];

    #[test]
    fn response_ends_as_head_says_in_any_pieces() {
        for (text, status, stays) in WHOLE {
            let bytes = text.as_bytes();
            assert_eq!(received(&[bytes]).unwrap(), Some((status, stays)), "{text}");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(received(&single).unwrap(), Some((status, stays)), "{text}");
            assert_eq!(received(&single[..single.len() - 1]).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn response_without_a_length_ends_with_its_connection() {
        let head = b"HTTP/1.1 200 OK\r\n\r\n";
        assert_eq!(received(&[head, b"abc"]).unwrap(), None);
        assert_eq!(received(&[head, b"abc", b""]).unwrap(), Some((200, false)));
    }

    #[test]
    fn connection_with_surplus_bytes_is_not_reused() {
        let both = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 408 \r\n";
        assert_eq!(received(&[both]).unwrap(), Some((200, false)));
    }

    #[test]
    fn malformed_and_truncated_responses_are_errors() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(70_000));
        for pieces in [
            &[&b""[..]][..],
            &[b"HTTP/1.1 2", b""],
            &[b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx", b""],
            &[b"SSH-2.0\r\n"],
            &[b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"],
            &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
            &[long.as_bytes()],
        ] {
            assert!(received(pieces).is_err(), "{pieces:?}");
        }
    }
}
