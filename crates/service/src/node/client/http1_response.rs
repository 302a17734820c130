//! An HTTP/1.1 response: read completely and discarded. No I/O.

use ::http1::{MAX_HEAD_BYTES, Response, ResponseParser};
use std::io;

/// State of a response being received.
#[derive(Debug)]
pub(super) struct Receiver {
    parser: ResponseParser,
    response: Option<Response>,
}

impl Default for Receiver {
    fn default() -> Self {
        Self { parser: ResponseParser::new(MAX_HEAD_BYTES), response: None }
    }
}

impl Receiver {
    /// True if any bytes have arrived.
    pub(super) fn is_begun(&self) -> bool {
        self.is_done() || self.parser.has_begun()
    }

    pub(super) fn is_done(&self) -> bool {
        self.response.is_some()
    }

    /// Status of the complete response.
    pub(super) fn status(&self) -> u16 {
        self.response.map_or(0, |response| response.status)
    }

    /// True if the connection may carry another request.
    pub(super) fn keeps_alive(&self) -> bool {
        self.response.is_some_and(|response| response.reusable)
    }

    /// Consumes received bytes; none means the end of the connection.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            self.response = self.parser.end().unwrap_or_default();
            return match (self.is_done(), self.is_begun()) {
                (true, _) => Ok(()),
                (false, true) => Err(closed("within the response")),
                (false, false) => Err(closed("before the response")),
            };
        }
        let (taken, response) = self.parser.receive(bytes).map_err(malformed)?;
        // Surplus bytes after the response: nothing that follows can be assigned to a request.
        let reusable = |response: Response| response.reusable && taken == bytes.len();
        self.response = response.map(|response| Response { reusable: reusable(response), ..response });
        Ok(())
    }
}

fn closed(when: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the connection was closed {when}"))
}

fn malformed(why: ::http1::Invalid) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("this is not a response of HTTP/1.1: {why}"))
}

/// Reads `input` as a response, and checks that how it arrives does not matter. The first byte is the length of pieces. For
/// fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_response(input: &[u8]) {
    let Some((piece, bytes)) = input.split_first() else { return };
    // How soon garbage is reported may depend on the pieces.
    let received = |piece: usize| {
        let mut receiver = Receiver::default();
        let mut parts = bytes.chunks(piece);
        while !receiver.is_done() {
            receiver.receive(parts.next().unwrap_or_default()).ok()?;
        }
        Some(receiver.status())
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
        Ok(receiver.is_done().then_some((receiver.status(), receiver.keeps_alive())))
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
