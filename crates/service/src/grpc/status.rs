//! Status of a call, sent in its trailers.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use results::percent_encode_except;
use std::borrow::Cow;

/// Status codes that the service itself uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Code {
    Ok = 0,
    InvalidArgument = 3,
    NotFound = 5,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
}

/// Highest status code: UNAUTHENTICATED.
pub(super) const MAX_CODE: u32 = 16;

/// A code and a message in plain ASCII.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Status {
    code: u32,
    message: Cow<'static, str>,
}

impl Status {
    pub(crate) const OK: Self = Self { code: Code::Ok as u32, message: Cow::Borrowed("") };

    pub(crate) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: code as u32, message: message.into() }
    }

    /// The status that a client requested.
    pub(super) fn asked_for(code: u32) -> Self {
        Self { code, message: Cow::Borrowed("the request set this status") }
    }

    /// Writes the fields for it, in trailers or in a trailers-only head.
    pub(crate) fn write(&self, fields: &mut HeaderMap) {
        fields.insert(HeaderName::from_static("grpc-status"), HeaderValue::from(self.code));
        if !self.message.is_empty() {
            fields.insert(HeaderName::from_static("grpc-message"), encoded(&self.message));
        }
    }
}

/// Percent-encodes everything but printable ASCII, and `%` itself (grpc/grpc, `doc/PROTOCOL-HTTP2.md`).
fn encoded(message: &str) -> HeaderValue {
    let stays = |byte| matches!(byte, b' '..=b'~') && byte != b'%';
    let text = percent_encode_except(message.as_bytes(), stays);
    HeaderValue::try_from(text).expect("printable ASCII is what a field may hold")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_field_characters_are_encoded() {
        let mut fields = HeaderMap::new();
        Status::new(Code::NotFound, "no 100% of naïve\n").write(&mut fields);
        assert_eq!(fields["grpc-status"], "5");
        assert_eq!(fields["grpc-message"], "no 100%25 of na%C3%AFve%0A");
        let mut fields = HeaderMap::new();
        Status::OK.write(&mut fields);
        assert_eq!((fields["grpc-status"].as_bytes(), fields.len()), (&b"0"[..], 1));
    }
}
