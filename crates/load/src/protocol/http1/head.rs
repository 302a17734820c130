//! The head of a response: status, body framing, and whether the connection is reusable.

use super::super::ProtocolError;
use super::body::Framing;
use crate::error::ErrorKind;
use httparse::{EMPTY_HEADER, Header, ParserConfig, Response, Status};
use std::mem::MaybeUninit;

/// Headers that fit without an allocation.
const USUAL_HEADERS: usize = 64;
/// Maximum number of headers.
const MAX_HEADERS: usize = 4096;

/// Parsed head of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) framing: Framing,
    pub(super) keep_alive: bool,
}

/// Parses a head; `None` if it is incomplete. Also returns its length.
pub(super) fn parse(bytes: &[u8], head_only: bool) -> Result<Option<(usize, Head)>, ProtocolError> {
    // The first byte of a TLS record: the second one decides.
    if matches!(bytes, [21 | 22]) {
        return Ok(None);
    }
    let mut headers = [const { MaybeUninit::uninit() }; USUAL_HEADERS];
    let mut response = Response::new(&mut []);
    let parsed =
        ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    match parsed {
        Ok(Status::Complete(length)) => Ok(Some((length, interpret(&response, head_only)?))),
        Ok(Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => parse_many_headers(bytes, head_only),
        Err(_) => Err(malformed(bytes)),
    }
}

fn parse_many_headers(bytes: &[u8], head_only: bool) -> Result<Option<(usize, Head)>, ProtocolError> {
    let mut headers = vec![EMPTY_HEADER; MAX_HEADERS];
    let mut response = Response::new(&mut headers);
    match response.parse(bytes) {
        Ok(Status::Complete(length)) => Ok(Some((length, interpret(&response, head_only)?))),
        Ok(Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(ProtocolError(ErrorKind::HeadTooLarge)),
        Err(_) => Err(malformed(bytes)),
    }
}

/// Error for a response that is not HTTP. A TLS record (alert 21 or handshake 22, version 3.x) is reported
/// separately: the port expects TLS.
fn malformed(bytes: &[u8]) -> ProtocolError {
    let tls = matches!(bytes, [21 | 22, 3, ..]);
    ProtocolError(if tls { ErrorKind::TlsResponse } else { ErrorKind::MalformedResponse })
}

fn interpret(response: &Response<'_, '_>, head_only: bool) -> Result<Head, ProtocolError> {
    let malformed = ProtocolError(ErrorKind::MalformedResponse);
    let status = response.code.filter(|code| (100..1000).contains(code)).ok_or(malformed)?;
    let fields = Fields::read(response.headers).ok_or(malformed)?;
    let bodyless = head_only || status < 200 || status == 204 || status == 304;
    // RFC 9112, section 6.3: no body; chunked; a length; otherwise until the connection ends.
    let framing = if bodyless {
        Framing::Length(0)
    } else if fields.transfer_encoding {
        if fields.chunked { Framing::Chunked } else { Framing::UntilEnd }
    } else {
        fields.content_length.map_or(Framing::UntilEnd, Framing::Length)
    };
    let persistent = if response.version == Some(0) { fields.keep_alive } else { !fields.close };
    Ok(Head { status, framing, keep_alive: persistent && framing != Framing::UntilEnd })
}

/// The header fields that matter to a client that discards bodies.
#[derive(Default)]
struct Fields {
    content_length: Option<u64>,
    transfer_encoding: bool,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    /// `None` if a length is not a number, or two lengths differ.
    fn read(headers: &[Header<'_>]) -> Option<Self> {
        let mut fields = Self::default();
        for header in headers {
            if header.name.eq_ignore_ascii_case("content-length") {
                let length = parse_length(header.value)?;
                if fields.content_length.is_some_and(|earlier| earlier != length) {
                    return None;
                }
                fields.content_length = Some(length);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                fields.transfer_encoding = true;
                // Only the last coding frames the message.
                fields.chunked = elements(header.value)
                    .last()
                    .is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
            } else if header.name.eq_ignore_ascii_case("connection") {
                fields.close |= elements(header.value).any(|option| option.eq_ignore_ascii_case(b"close"));
                fields.keep_alive |=
                    elements(header.value).any(|option| option.eq_ignore_ascii_case(b"keep-alive"));
            }
        }
        Some(fields)
    }
}

/// Splits a comma-separated field value.
fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Parses a decimal length; a list of equal lengths counts as one (RFC 9110, section 8.6).
fn parse_length(value: &[u8]) -> Option<u64> {
    let mut lengths = elements(value).map(|digits| {
        let text = std::str::from_utf8(digits).ok()?;
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            None
        } else {
            text.parse().ok()
        }
    });
    let first: u64 = lengths.next()??;
    lengths.all(|length| length == Some(first)).then_some(first)
}
