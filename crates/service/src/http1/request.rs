//! The head of a request: parsing, and the rejections that RFC 9112 requires.
//!
//! `httparse` does the parsing; this file interprets the head: body framing, keep-alive, and the response to
//! send. Conflicting framings are rejected, never guessed (RFC 9112, 6.1 to 6.3).

use super::body::Body;
use crate::reply::Reply;
use crate::settings::Answer;
use httparse::{Header, Status};
use std::mem::MaybeUninit;

/// Maximum size of a head, bytes, from the request line to the empty line.
pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum number of header fields.
pub(crate) const MAX_HEADERS: usize = 128;

/// A valid request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub reply: Reply,
    /// The client wants to reuse this connection.
    pub keep_alive: bool,
    /// The client speaks HTTP/1.0 and must be told that the connection stays open.
    pub version_1_0: bool,
    /// The method is HEAD: the response has no body.
    pub head_only: bool,
}

/// A request that cannot be answered as such, after which nothing more can be read from the connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Rejection {
    pub status: u16,
    pub reason: &'static str,
}

/// A head and the framing of its body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    pub request: Request,
    pub body: Body,
    /// The client expects `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

/// Framing of a request, and its connection options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framing {
    pub body: Body,
    pub keep_alive: bool,
    pub version_1_0: bool,
    pub expects_continue: bool,
    /// It has an unsupported expectation.
    pub expects_else: bool,
}

/// Parses the head at the start of `input`. Returns its length in bytes and its content, or `None` if it is
/// incomplete.
pub(crate) fn parse(input: &[u8], defaults: &Answer) -> Result<Option<(usize, Head)>, Rejection> {
    parse_with(input, |parsed, framing| understand(parsed, framing, defaults))
}

/// Like [`parse`], with the result of `understand`.
pub(crate) fn parse_with<T>(
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

/// What the header fields say about framing and the connection.
#[derive(Default)]
pub(crate) struct Fields {
    hosts: usize,
    pub content_length: Option<u64>,
    pub chunked: bool,
    pub close: bool,
    pub keep_alive: bool,
    expects_continue: bool,
    expects_else: bool,
}

fn framing(parsed: &httparse::Request<'_, '_>) -> Result<Framing, Rejection> {
    let version_1_0 = parsed.version == Some(0);
    let fields = read_fields(parsed.headers)?;
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
        (true, None) => Body::chunked(),
        (false, length) => Body::sized(length.unwrap_or(0)),
    };
    Ok(Framing {
        body,
        keep_alive: !fields.close && (!version_1_0 || fields.keep_alive),
        version_1_0,
        // RFC 9110, 10.1.1: an expectation in an HTTP/1.0 request is ignored.
        expects_continue: fields.expects_continue && !version_1_0 && !body.is_done(),
        expects_else: fields.expects_else,
    })
}

fn understand(parsed: &httparse::Request<'_, '_>, framing: Framing, defaults: &Answer) -> Head {
    let method = parsed.method.unwrap_or_default();
    let reply = if framing.expects_else {
        Reply::Refused { status: 417, reason: "expected no expectation but 100-continue".into() }
    } else {
        Reply::to(method, parsed.path.unwrap_or_default(), defaults)
    };
    let Framing { body, keep_alive, version_1_0, expects_continue, .. } = framing;
    let request = Request { reply, keep_alive, version_1_0, head_only: method == "HEAD" };
    Head { request, body, expects_continue }
}

pub(crate) fn read_fields(headers: &[Header<'_>]) -> Result<Fields, Rejection> {
    let mut fields = Fields::default();
    for Header { name, value } in headers {
        // The length distinguishes most fields from these five without comparing their letters.
        match name.len() {
            4 if name.eq_ignore_ascii_case("Host") => fields.hosts += 1,
            6 if name.eq_ignore_ascii_case("Expect") => {
                let expected = value.eq_ignore_ascii_case(b"100-continue");
                fields.expects_continue |= expected;
                fields.expects_else |= !expected;
            }
            10 if name.eq_ignore_ascii_case("Connection") => {
                for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    fields.close |= option.eq_ignore_ascii_case(b"close");
                    fields.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case("Content-Length") => {
                fields.content_length = Some(length_of(value, fields.content_length)?);
            }
            17 if name.eq_ignore_ascii_case("Transfer-Encoding") => {
                if fields.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Rejection {
                        status: 501,
                        reason: "the only Transfer-Encoding here is chunked",
                    });
                }
                fields.chunked = true;
            }
            _ => {}
        }
    }
    Ok(fields)
}

/// Parses a Content-Length: the only one, digits and nothing else, within 64 bits.
fn length_of(value: &[u8], earlier: Option<u64>) -> Result<u64, Rejection> {
    if earlier.is_some() {
        return Err(Rejection { status: 400, reason: "expected one Content-Length" });
    }
    let digits =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or(Rejection { status: 400, reason: "expected a whole number as Content-Length" })
}
