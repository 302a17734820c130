//! Serialized responses: heads, and the filler of bodies.

use crate::content::{FILLER, MAX_COPIED_BYTES};
use crate::settings::Answer;
use ::http1::{EVENT_STREAM, Rejection};
use std::io::Write as _;

/// The response to `Expect: 100-continue`.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Appends the response that accepts a WebSocket with this value.
pub(crate) fn write_switch(out: &mut Vec<u8>, accept: &str) {
    // Writing to memory cannot fail.
    let _ = write!(
        out,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
}

/// Connection-related fields of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub keep_alive: bool,
    pub version_1_0: bool,
    pub head_only: bool,
}

/// Writes responses; the default one is copied from a prepared buffer.
#[derive(Debug)]
pub(crate) struct Composer {
    usual_status: u16,
    usual_body_bytes: u64,
    /// Head and body of the default response; empty if its body is too long to be copied.
    usual: Vec<u8>,
}

impl Composer {
    pub(crate) fn new(usual: &Answer) -> Self {
        let mut composer =
            Self { usual_status: usual.status, usual_body_bytes: usual.body_bytes, usual: Vec::new() };
        let frame = Frame { keep_alive: true, version_1_0: false, head_only: false };
        let mut bytes = Vec::new();
        if composer.filler(&mut bytes, usual.status, usual.body_bytes, frame) == 0 {
            bytes.shrink_to_fit();
            composer.usual = bytes;
        }
        composer
    }

    /// Appends a response with a filler body, and returns how many bytes of [`FILLER`] must be sent after it.
    pub(crate) fn filler(&self, out: &mut Vec<u8>, status: u16, body_bytes: u64, frame: Frame) -> u64 {
        let plain = frame.keep_alive && !frame.version_1_0 && !frame.head_only;
        let usual = status == self.usual_status && body_bytes == self.usual_body_bytes;
        if plain && usual && !self.usual.is_empty() {
            out.extend_from_slice(&self.usual);
            return 0;
        }
        write_head(out, status, "text/plain", body_bytes, frame);
        if frame.head_only || is_bodiless(status) {
            return 0;
        }
        if body_bytes > MAX_COPIED_BYTES {
            return body_bytes;
        }
        out.extend_from_slice(&FILLER[..usize::try_from(body_bytes).unwrap_or(0)]);
        0
    }
}

/// Appends a response with this text.
pub(crate) fn write_text(out: &mut Vec<u8>, status: u16, media_type: &str, text: &str, frame: Frame) {
    write_head(out, status, media_type, text.len() as u64, frame);
    if !frame.head_only {
        out.extend_from_slice(text.as_bytes());
    }
}

/// Appends a response with this line of text.
pub(crate) fn write_line(out: &mut Vec<u8>, status: u16, line: &str, frame: Frame) {
    write_text(out, status, "text/plain", &format!("{line}\n"), frame);
}

/// Appends the last response of a connection.
pub(crate) fn write_rejection(out: &mut Vec<u8>, rejection: &Rejection) {
    let frame = Frame { keep_alive: false, version_1_0: false, head_only: false };
    write_line(out, rejection.status, rejection.reason, frame);
}

/// Appends the head of a response.
pub(crate) fn write_head(out: &mut Vec<u8>, status: u16, media_type: &str, body_bytes: u64, frame: Frame) {
    write_head_of(out, status, media_type, Some(body_bytes), frame);
}

/// Appends the head of a stream of events: it has no length, and ends with its last chunk, or for a client of HTTP/1.0 with the
/// connection.
pub(crate) fn write_stream_head(out: &mut Vec<u8>, status: u16, frame: Frame) {
    write_head_of(out, status, EVENT_STREAM, None, frame);
}

fn write_head_of(out: &mut Vec<u8>, status: u16, media_type: &str, body_bytes: Option<u64>, frame: Frame) {
    // Writing to memory cannot fail.
    let _ = write!(out, "HTTP/1.1 {status} {}\r\n", reason(status));
    if !is_bodiless(status) {
        let _ = write!(out, "Content-Type: {media_type}\r\n");
        if let Some(bytes) = body_bytes {
            let _ = write!(out, "Content-Length: {bytes}\r\n");
        } else if !frame.version_1_0 {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
    }
    match (frame.keep_alive, frame.version_1_0) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, true) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, false) => {}
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a part of a stream's body, as a chunk unless the client speaks HTTP/1.0.
pub(crate) fn write_part(out: &mut Vec<u8>, part: &[u8], frame: Frame) {
    if frame.version_1_0 {
        out.extend_from_slice(part);
    } else if !part.is_empty() {
        let _ = write!(out, "{:x}\r\n", part.len());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the end of a stream's body.
pub(crate) fn write_stream_end(out: &mut Vec<u8>, frame: Frame) {
    if !frame.version_1_0 {
        out.extend_from_slice(b"0\r\n\r\n");
    }
}

/// RFC 9110, 15.3.5 and 15.4.5: these have no body.
pub(crate) fn is_bodiless(status: u16) -> bool {
    matches!(status, 204 | 304)
}

/// The reason phrase of a status; may be empty, as RFC 9112 allows.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        417 => "Expectation Failed",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Frame = Frame { keep_alive: true, version_1_0: false, head_only: false };

    fn response(usual: &Answer, status: u16, body_bytes: u64, frame: Frame) -> (String, u64) {
        let mut out = Vec::new();
        let behind = Composer::new(usual).filler(&mut out, status, body_bytes, frame);
        (String::from_utf8(out).unwrap(), behind)
    }

    #[test]
    fn default_response_equals_freshly_written_one() {
        let usual = Answer { body_bytes: 1024, ..Answer::default() };
        let kept = response(&usual, 200, 1024, PLAIN);
        assert_eq!(kept, response(&Answer::default(), 200, 1024, PLAIN));
        let (head, body) = kept.0.split_once("\r\n\r\n").unwrap();
        assert_eq!(head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024");
        assert_eq!(body.as_bytes(), &FILLER[..1024]);
        assert!(body.contains("\n0040..."));
    }

    #[test]
    fn head_announces_how_response_ends() {
        let answer = Answer::default();
        let (head, _) = response(&answer, 503, 0, Frame { keep_alive: false, ..PLAIN });
        assert_eq!(
            head,
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let (head, _) = response(&answer, 200, 3, Frame { version_1_0: true, ..PLAIN });
        assert!(head.ends_with("Connection: keep-alive\r\n\r\n000"), "{head}");
        let (head, behind) = response(&answer, 200, 1 << 30, Frame { head_only: true, ..PLAIN });
        assert!(head.ends_with("Content-Length: 1073741824\r\n\r\n"), "{head}");
        assert_eq!(behind, 0);
        assert_eq!(response(&answer, 204, 5, PLAIN), ("HTTP/1.1 204 No Content\r\n\r\n".into(), 0));
        assert_eq!(response(&answer, 200, 1 << 30, PLAIN).1, 1 << 30);
    }
}
