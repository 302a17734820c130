//! The head of a request: parsing, and the rejections that RFC 9112 requires.

use crate::body::{Body, BodyError};
use crate::fields::{Fields, Message};
use httparse::{Header, Status};
use std::mem::MaybeUninit;

/// Maximum size of a request's head, bytes, from the request line to the empty line.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum number of header fields.
const MAX_HEADERS: usize = 128;

/// A request that cannot be answered as such, after which nothing more can be read from the connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rejection {
    /// Status of the response.
    pub status: u16,
    /// Text of the response.
    pub reason: &'static str,
}

impl From<BodyError> for Rejection {
    fn from(_: BodyError) -> Self {
        Self { status: 400, reason: "the chunks of the request's body are malformed" }
    }
}

/// Framing of a request, and its connection options.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    /// The body after the head.
    pub body: Body,
    /// The client wants to reuse this connection.
    pub keep_alive: bool,
    /// The client speaks HTTP/1.0 and must be told that the connection stays open.
    pub version_1_0: bool,
    /// The client expects `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// It has an unsupported expectation.
    pub expects_else: bool,
    /// It asks for another protocol: see [`crate::websocket::requested_key`].
    pub upgrades: bool,
}

/// Parses the head at the start of `input`. Returns its length in bytes and the result of `understand`, or `None` if it
/// is incomplete.
///
/// # Errors
/// Returns an error if the head is malformed, too large, or has a framing that RFC 9112 does not allow.
pub fn parse_request<T>(
    input: &[u8],
    understand: impl FnOnce(&httparse::Request<'_, '_>, Framing) -> T,
) -> Result<Option<(usize, T)>, Rejection> {
    let considered = &input[..input.len().min(MAX_HEAD_BYTES)];
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(considered, &mut headers) {
        Ok(Status::Complete(length)) => Ok(Some((length, understand(&parsed, framing(&parsed)?)))),
        Ok(Status::Partial) if considered.len() == MAX_HEAD_BYTES => {
            Err(Rejection { status: 431, reason: "the head of the request is over 64 KiB" })
        }
        Ok(Status::Partial) => Ok(None),
        Err(error) => Err(malformed(error)),
    }
}

fn malformed(error: httparse::Error) -> Rejection {
    use httparse::Error;
    let (status, reason) = match error {
        Error::TooManyHeaders => (431, "the request has more than 128 header fields"),
        Error::Version => (505, "expected HTTP/1.1 or HTTP/1.0"),
        Error::HeaderName => (400, "the name of a header field has a byte that may not be there"),
        Error::HeaderValue => (400, "the value of a header field has a byte that may not be there"),
        Error::NewLine => (400, "a line ends with a byte that may not be there"),
        Error::Token | Error::Status => (400, "this is not an HTTP request"),
    };
    Rejection { status, reason }
}

/// Conflicting framings are rejected, never guessed (RFC 9112, 6.1 to 6.3).
fn framing(parsed: &httparse::Request<'_, '_>) -> Result<Framing, Rejection> {
    let version_1_0 = parsed.version == Some(0);
    let fields = Fields::read(parsed.headers, Message::Request)?;
    if fields.hosts != 1 && !(version_1_0 && fields.hosts == 0) {
        return Err(Rejection { status: 400, reason: "expected one Host header field" });
    }
    let body = match (fields.chunked, fields.content_length) {
        (true, Some(_)) => {
            return Err(Rejection { status: 400, reason: "Content-Length and Transfer-Encoding disagree" });
        }
        (true, None) if version_1_0 => {
            return Err(Rejection { status: 400, reason: "HTTP/1.0 has no Transfer-Encoding" });
        }
        (true, None) => Body::chunked(Message::Request),
        (false, length) => Body::sized(length.unwrap_or(0)),
    };
    Ok(Framing {
        body,
        keep_alive: !fields.close && (!version_1_0 || fields.keep_alive),
        version_1_0,
        // RFC 9110, 10.1.1: an expectation in an HTTP/1.0 request is ignored.
        expects_continue: fields.expects_continue && !version_1_0 && !body.is_done(),
        expects_else: fields.expects_else,
        upgrades: fields.upgrades,
    })
}
