//! Headers and bodies of requests, as the user wrote them.

use super::text::{Place, Text, Values};
use http::header::{InvalidHeaderName, InvalidHeaderValue};
use http::{HeaderName, HeaderValue};
use std::fmt;
use std::sync::Arc;

/// A header of requests.
#[derive(Clone, PartialEq)]
pub struct Header {
    name: HeaderName,
    /// Name with the letter case in which HTTP/1.1 sends it; HTTP/2 has lower case only.
    written: Box<str>,
    value: Text,
}

/// A header that cannot be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeaderError {
    /// An invalid name.
    #[error("the name is not that of a header")]
    Name,
    /// An invalid value.
    #[error("the value is not that of a header")]
    Value,
}

impl From<InvalidHeaderName> for HeaderError {
    fn from(_: InvalidHeaderName) -> Self {
        Self::Name
    }
}

impl From<InvalidHeaderValue> for HeaderError {
    fn from(_: InvalidHeaderValue) -> Self {
        Self::Value
    }
}

impl Header {
    /// A header whose name keeps its letter case, with this value.
    ///
    /// # Errors
    /// Returns an error without the value if name or value is invalid.
    pub fn new(name: &str, value: &str) -> Result<Self, HeaderError> {
        let value: HeaderValue = value.parse()?;
        Ok(Self { name: name.parse()?, written: name.into(), value: Text::literal(value.as_bytes()) })
    }

    /// Turns each `{a..b}` in the value into a placeholder for a number. Other braces stay as they are.
    #[must_use]
    pub fn with_ranges(self) -> Self {
        Self { value: self.value.with_ranges(), ..self }
    }

    /// A header whose value has placeholders. What they are filled with must be valid in a header.
    ///
    /// # Errors
    /// Returns an error without the value if the name, or the value without what fills it, is invalid.
    pub fn with_value(name: &str, value: Text) -> Result<Self, HeaderError> {
        let mut literals = Vec::new();
        value.write(&[], &mut literals);
        HeaderValue::from_bytes(&literals)?;
        Ok(Self { name: name.parse()?, written: name.into(), value })
    }

    /// Name for comparisons, in lower case.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Value, with its placeholders.
    #[must_use]
    pub fn value(&self) -> &Text {
        &self.value
    }

    /// Name as written.
    pub(crate) fn written(&self) -> &str {
        &self.written
    }
}

impl From<(HeaderName, HeaderValue)> for Header {
    fn from((name, value): (HeaderName, HeaderValue)) -> Self {
        Self { written: name.as_str().into(), name, value: Text::literal(value.as_bytes()) }
    }
}

/// Values may be secrets.
impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header").field("name", &self.written).finish_non_exhaustive()
    }
}

/// The body of requests; empty for none.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The same for all requests.
    Constant(Arc<[u8]>),
    /// With placeholders.
    Varying(Arc<Text>),
}

impl Default for Body {
    fn default() -> Self {
        Self::Constant(Arc::default())
    }
}

impl<T: Into<Arc<[u8]>>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::Constant(bytes.into())
    }
}

impl Body {
    /// A body in which each `{a..b}` is a placeholder for a number. Other braces stay as they are.
    #[must_use]
    pub fn with_ranges(text: &[u8]) -> Self {
        Self::of_text(Text::literal(text).with_ranges())
    }

    /// A body with the placeholders of this text.
    #[must_use]
    pub fn of_text(text: Text) -> Self {
        match text.as_literal() {
            Some(literal) => literal.into(),
            None => Self::Varying(Arc::new(text)),
        }
    }

    /// True if no request has a body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Constant(bytes) if bytes.is_empty())
    }

    /// Bytes that are the same for all requests; absent with placeholders.
    #[must_use]
    pub fn constant(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::Constant(bytes) => Some(bytes),
            Self::Varying(_) => None,
        }
    }

    /// Bytes of one request.
    pub(crate) fn bytes(&self, values: Values<'_>) -> Arc<[u8]> {
        match self {
            Self::Constant(bytes) => Arc::clone(bytes),
            Self::Varying(text) => {
                let mut bytes = Vec::with_capacity(text.length(values));
                text.write_with(values, &mut bytes);
                bytes.into()
            }
        }
    }

    /// The placeholders, in order.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        let text = match self {
            Self::Constant(_) => None,
            Self::Varying(text) => Some(text),
        };
        text.into_iter().flat_map(|text| text.places())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranges_in_text_are_placeholders() {
        let body = |text: &str| Body::with_ranges(text.as_bytes());
        for text in ["", "{\"a\": {1..x}}", "{1..}", "{2..1}", "{{}}", "a{1,2}", "{", "{0..1000000000}"] {
            assert_eq!(body(text), Body::from(text.as_bytes()), "{text}");
        }
        let written = |text: &str, numbers: &[u64]| {
            String::from_utf8(body(text).bytes(numbers.into()).to_vec()).unwrap()
        };
        assert_eq!(written("{\"id\": {1..1000}}", &[42]), "{\"id\": 42}");
        assert_eq!(written("{{1..2}}{003..100}{", &[2, 7]), "{2}007{");
        let last = |place: Place| match place {
            Place::Range(range) => Some(range.last),
            Place::Data(_) => None,
        };
        assert_eq!(body("{1..3}-{5..9}").places().map(last).collect::<Vec<_>>(), [Some(3), Some(9)]);
    }

    #[test]
    fn header_keeps_its_case_and_hides_its_value() {
        let header = Header::new("X-Request-ID", "s3cret-{1..9}").unwrap().with_ranges();
        assert_eq!((header.written(), header.name().as_str()), ("X-Request-ID", "x-request-id"));
        assert_eq!(header.value().places().count(), 1);
        assert!(!format!("{header:?}").contains("s3cret"), "{header:?}");
        assert_eq!(Header::new("a b", "c").unwrap_err(), HeaderError::Name);
        assert_eq!(Header::new("a", "b\r\nc: d").unwrap_err(), HeaderError::Value);
    }
}
