//! Header fields that frame a message or concern its connection.

use crate::request::Rejection;
use httparse::Header;

/// Kinds of messages, which have different rules.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Message {
    /// It has one length at most, and no coding but chunked.
    Request,
    /// It may repeat its length (RFC 9110, 8.6), and has any codings, of which the last one frames it.
    Response,
}

/// The fields of a head, as far as they frame its message or concern its connection.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub hosts: usize,
    pub content_length: Option<u64>,
    /// It has transfer codings.
    pub coded: bool,
    /// The last transfer coding is chunked.
    pub chunked: bool,
    pub close: bool,
    pub keep_alive: bool,
    pub expects_continue: bool,
    /// It has an unsupported expectation.
    pub expects_else: bool,
    /// Its content is a stream of events.
    pub event_stream: bool,
    /// It asks for another protocol.
    pub upgrades: bool,
}

impl Fields {
    pub(crate) fn read(headers: &[Header<'_>], message: Message) -> Result<Self, Rejection> {
        let is_request = message == Message::Request;
        let mut fields = Self::default();
        for Header { name, value } in headers {
            // The length distinguishes most fields from these seven without comparing their letters.
            match name.len() {
                4 if name.eq_ignore_ascii_case("Host") => fields.hosts += 1,
                6 if name.eq_ignore_ascii_case("Expect") => {
                    let expected = value.eq_ignore_ascii_case(b"100-continue");
                    fields.expects_continue |= expected;
                    fields.expects_else |= !expected;
                }
                7 if name.eq_ignore_ascii_case("Upgrade") => fields.upgrades = true,
                10 if name.eq_ignore_ascii_case("Connection") => {
                    for option in elements(value) {
                        fields.close |= option.eq_ignore_ascii_case(b"close");
                        fields.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                12 if is_event_stream(value) && name.eq_ignore_ascii_case("Content-Type") => {
                    fields.event_stream = true;
                }
                14 if name.eq_ignore_ascii_case("Content-Length") => {
                    let length = length(value, is_request);
                    if fields.content_length.is_some_and(|earlier| is_request || length != Some(earlier)) {
                        return Err(Rejection { status: 400, reason: "expected one Content-Length" });
                    }
                    let reason = "expected a whole number as Content-Length";
                    fields.content_length = Some(length.ok_or(Rejection { status: 400, reason })?);
                }
                17 if name.eq_ignore_ascii_case("Transfer-Encoding") => {
                    if is_request && (fields.coded || !is_chunked(value)) {
                        let reason = "the only Transfer-Encoding here is chunked";
                        return Err(Rejection { status: 501, reason });
                    }
                    fields.coded = true;
                    fields.chunked = elements(value).last().is_some_and(is_chunked);
                }
                _ => {}
            }
        }
        Ok(fields)
    }
}

/// Media type of server-sent events (WHATWG HTML, 9.2).
pub const EVENT_STREAM: &str = "text/event-stream";

/// True for [`EVENT_STREAM`], with or without parameters.
#[must_use]
pub fn is_event_stream(content_type: &[u8]) -> bool {
    content_type.split_at_checked(EVENT_STREAM.len()).is_some_and(|(media_type, rest)| {
        media_type.eq_ignore_ascii_case(EVENT_STREAM.as_bytes())
            && matches!(rest, [] | [b';' | b' ' | b'\t', ..])
    })
}

fn is_chunked(coding: &[u8]) -> bool {
    coding.eq_ignore_ascii_case(b"chunked")
}

/// Splits a comma-separated field value.
pub(crate) fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Parses a length: digits and nothing else, within 64 bits; in a response, also a list of equal lengths.
fn length(value: &[u8], is_request: bool) -> Option<u64> {
    let number = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
    };
    if is_request {
        return number(value);
    }
    let mut lengths = elements(value).map(number);
    let first: u64 = lengths.next()??;
    lengths.all(|length| length == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_of_events_may_have_parameters() {
        for content_type in
            ["text/event-stream", "Text/Event-Stream;charset=utf-8", "text/event-stream ; x=y"]
        {
            assert!(is_event_stream(content_type.as_bytes()), "{content_type}");
        }
        for content_type in ["text/plain", "text/event-streams", "text/event", "", "x; text/event-stream"] {
            assert!(!is_event_stream(content_type.as_bytes()), "{content_type}");
        }
    }
}
