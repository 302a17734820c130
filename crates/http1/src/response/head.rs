//! The head of a response: status, body, and whether the connection is reusable.

use super::Invalid;
use crate::body::Body;
use crate::fields::{Fields, Message};
use httparse::{EMPTY_HEADER, ParserConfig, Response, Status};
use std::mem::MaybeUninit;

/// Headers that fit without an allocation.
const USUAL_HEADERS: usize = 64;
/// Maximum number of headers.
const MAX_HEADERS: usize = 4096;

/// Parsed head of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Head {
    pub status: u16,
    pub body: Body,
    pub keep_alive: bool,
    /// The body is a stream of events.
    pub event_stream: bool,
}

/// Parses a head; `None` if it is incomplete. Also returns its length.
pub(super) fn parse(bytes: &[u8], head_only: bool) -> Result<Option<(usize, Head)>, Invalid> {
    // The first byte of a TLS record: the second one decides.
    if matches!(bytes, [21 | 22]) {
        return Ok(None);
    }
    let mut headers = [const { MaybeUninit::uninit() }; USUAL_HEADERS];
    let mut response = Response::new(&mut []);
    let parsed =
        ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    if parsed != Err(httparse::Error::TooManyHeaders) {
        return understand(parsed, &response, bytes, head_only);
    }
    let mut headers = vec![EMPTY_HEADER; MAX_HEADERS];
    let mut response = Response::new(&mut headers);
    let parsed = response.parse(bytes);
    understand(parsed, &response, bytes, head_only)
}

/// Calls `field` for each field of a head that was parsed before.
pub(super) fn fields(head: &[u8], field: &mut dyn FnMut(&[u8], &[u8])) {
    let lines = head.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::trim_ascii_end);
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            field(&line[..colon], line[colon + 1..].trim_ascii_start());
        }
    }
}

fn understand(
    parsed: httparse::Result<usize>,
    response: &Response<'_, '_>,
    bytes: &[u8],
    head_only: bool,
) -> Result<Option<(usize, Head)>, Invalid> {
    match parsed {
        Ok(Status::Complete(length)) => Ok(Some((length, interpret(response, head_only)?))),
        Ok(Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(Invalid::TooManyHeaders),
        // A TLS record: alert or handshake, version 3.x. The port expects TLS.
        Err(_) if matches!(bytes, [21 | 22, 3, ..]) => Err(Invalid::Tls),
        Err(error) => Err(Invalid::Syntax(error)),
    }
}

fn interpret(response: &Response<'_, '_>, head_only: bool) -> Result<Head, Invalid> {
    let status = response.code.filter(|code| (100..1000).contains(code)).ok_or(Invalid::Status)?;
    let fields = Fields::read(response.headers, Message::Response)
        .map_err(|rejection| Invalid::Fields(rejection.reason))?;
    // RFC 9112, section 6.3: no body; chunked; a length; otherwise until the connection ends.
    let body = match fields.content_length {
        _ if head_only || status < 200 || matches!(status, 204 | 304) => Body::sized(0),
        _ if fields.chunked => Body::chunked(Message::Response),
        Some(length) if !fields.coded => Body::sized(length),
        _ => Body::until_end(),
    };
    let persistent = !fields.close && (response.version != Some(0) || fields.keep_alive);
    let keep_alive = persistent && !body.is_until_end();
    Ok(Head { status, body, keep_alive, event_stream: fields.event_stream })
}
