//! Text with placeholders that are filled per request: for numbers, such as `/get/{1..100}`, and for data.

use super::data::{Rows, path_text};
use std::borrow::Cow;
use std::io::Write as _;
use std::sync::Arc;

/// Maximum distance between the ends of a range: anything greater is taken for a typo.
const MAX_NUMBERS: u64 = 1_000_000_000;

/// Maximum digits of a number in a range: as many as the maximum value has.
const MAX_DIGITS: usize = 20;

/// Maximum length of a range with its braces.
const MAX_RANGE_BYTES: usize = 2 * MAX_DIGITS + "{..}".len();

/// Text with placeholders.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Text {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Piece {
    Literal(Vec<u8>),
    Number(Numbers),
    /// A row or number of a source.
    Data {
        source: usize,
        content: Content,
    },
    /// A value of the session.
    OfSession {
        value: usize,
        /// Bytes that no path has are percent-encoded.
        in_path: bool,
    },
    /// A line of a head with the cookies of the session; nothing without any.
    CookieLine,
}

/// Values for the placeholders of one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a> {
    /// Numbers of ranges and data, in the order of their placeholders.
    pub numbers: &'a [u64],
    /// Values that the session of the request has extracted.
    pub of_session: &'a [Box<[u8]>],
    /// Cookies of the session, as in a header; empty for none.
    pub cookies: &'a [u8],
}

impl<'a> From<&'a [u64]> for Values<'a> {
    fn from(numbers: &'a [u64]) -> Self {
        Self { numbers, ..Self::default() }
    }
}

impl Values<'_> {
    /// The values without this many numbers.
    pub(crate) fn after(self, numbers: usize) -> Self {
        Self { numbers: self.numbers.get(numbers..).unwrap_or_default(), ..self }
    }

    fn value_of_session(&self, value: usize, in_path: bool) -> Cow<'_, [u8]> {
        let value = self.of_session.get(value).map_or(&[][..], |value| &**value);
        if in_path { path_text(value).into_bytes().into() } else { value.into() }
    }

    fn cookie_line(&self, out: &mut Vec<u8>) {
        if !self.cookies.is_empty() {
            out.extend_from_slice(b"Cookie: ");
            out.extend_from_slice(self.cookies);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Content of a placeholder for data, by the number of its source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Content {
    /// The number itself.
    Number,
    /// The text of this row.
    Rows(Arc<Rows>),
    /// Filler of this one of the sizes, bytes.
    Filler(Arc<[usize]>),
}

/// Size of filler.
fn size_of(sizes: &[usize], number: u64) -> usize {
    usize::try_from(number).ok().and_then(|number| sizes.get(number)).copied().unwrap_or(0)
}

/// A placeholder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// For a number of this range.
    Range(Numbers),
    /// For the request's value of the source with this index.
    Data(usize),
}

/// The numbers allowed in one placeholder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Numbers {
    /// The lowest.
    pub first: u64,
    /// The highest.
    pub last: u64,
    /// Minimum number of digits, zero-padded on the left, as in `{001..100}`.
    pub digits: usize,
}

/// An invalid range of numbers.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RangeError {
    /// An unbalanced brace, or something else between braces.
    #[error("`{0}` is not a range of numbers such as {{1..100}}")]
    Malformed(String),
    /// The range is reversed or too long.
    #[error("`{0}` must run upwards over at most 1000000000 numbers")]
    Bounds(String),
}

impl From<String> for Text {
    fn from(literal: String) -> Self {
        Self { pieces: vec![Piece::Literal(literal.into_bytes())] }
    }
}

impl Text {
    /// Parses text in which `{a..b}` is a placeholder for a number.
    ///
    /// # Errors
    /// Returns an error if braces contain anything else.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let mut parsed = Self::default();
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            parsed.push(&rest.as_bytes()[..brace]);
            let length =
                rest[brace..].find('}').ok_or_else(|| RangeError::Malformed(rest[brace..].to_owned()))?;
            let range = &rest[brace..=brace + length];
            parsed.pieces.push(Piece::Number(Numbers::parse(range)?));
            rest = &rest[brace + length + 1..];
        }
        parsed.push(rest.as_bytes());
        Ok(parsed)
    }

    /// Text without placeholders.
    pub(crate) fn literal(bytes: &[u8]) -> Self {
        Self { pieces: vec![Piece::Literal(bytes.to_vec())] }
    }

    /// Turns each `{a..b}` into a placeholder. Braces around anything else stay as they are, as in JSON.
    #[must_use]
    pub fn with_ranges(&self) -> Self {
        let mut parsed = Self::default();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => parsed.push_with_ranges(literal),
                other => parsed.pieces.push(other.clone()),
            }
        }
        parsed
    }

    fn push_with_ranges(&mut self, literal: &[u8]) {
        let (mut from, mut at) = (0, 0);
        while at < literal.len() {
            match range_at(&literal[at..]) {
                Some((numbers, length)) => {
                    self.push(&literal[from..at]);
                    self.pieces.push(Piece::Number(numbers));
                    at += length;
                    from = at;
                }
                None => at += 1,
            }
        }
        self.push(&literal[from..]);
    }

    /// Appends literal text.
    pub fn push(&mut self, literal: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Literal(last)) => last.extend_from_slice(literal),
            _ if literal.is_empty() => {}
            _ => self.pieces.push(Piece::Literal(literal.to_vec())),
        }
    }

    /// Appends another text with its placeholders.
    pub fn append(&mut self, other: &Self) {
        for piece in &other.pieces {
            match piece {
                Piece::Literal(literal) => self.push(literal),
                other => self.pieces.push(other.clone()),
            }
        }
    }

    /// Appends a placeholder for a value of a source.
    pub fn push_data(&mut self, source: usize, content: Content) {
        self.pieces.push(Piece::Data { source, content });
    }

    /// Appends a placeholder for a value of the session. `in_path`: bytes that no path has are percent-encoded.
    pub fn push_of_session(&mut self, value: usize, in_path: bool) {
        self.pieces.push(Piece::OfSession { value, in_path });
    }

    /// Appends the line of a head that has the cookies of the session.
    pub(crate) fn push_cookie_line(&mut self) {
        self.pieces.push(Piece::CookieLine);
    }

    /// The bytes if there are no placeholders.
    pub(crate) fn as_literal(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [] => Some(b""),
            [Piece::Literal(literal)] => Some(literal),
            _ => None,
        }
    }

    /// The text itself if it has no placeholders.
    #[must_use]
    pub fn constant(&self) -> Option<String> {
        self.as_literal().and_then(|literal| String::from_utf8(literal.to_vec()).ok())
    }

    /// The placeholders for numbers, in order.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) | Piece::OfSession { .. } | Piece::CookieLine => None,
            Piece::Number(numbers) => Some(Place::Range(*numbers)),
            Piece::Data { source, .. } => Some(Place::Data(*source)),
        })
    }

    /// The placeholders for numbers of ranges, in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Numbers> {
        self.places().filter_map(|place| match place {
            Place::Range(numbers) => Some(numbers),
            Place::Data(_) => None,
        })
    }

    /// Length of the text with these values.
    pub(crate) fn length(&self, values: Values<'_>) -> usize {
        let mut numbers = values.numbers.iter();
        let digits_of = |number: u64| number.checked_ilog10().map_or(1, |log| log as usize + 1);
        let length = |piece: &Piece| match piece {
            Piece::Literal(literal) => literal.len(),
            Piece::Number(Numbers { first, digits, .. }) => {
                digits_of(*numbers.next().unwrap_or(first)).max(*digits)
            }
            Piece::Data { content, .. } => {
                let number = *numbers.next().unwrap_or(&0);
                match content {
                    Content::Number => digits_of(number),
                    Content::Rows(rows) => rows.get(number).len(),
                    Content::Filler(sizes) => size_of(sizes, number),
                }
            }
            Piece::OfSession { value, in_path } => values.value_of_session(*value, *in_path).len(),
            Piece::CookieLine => {
                let mut line = Vec::new();
                values.cookie_line(&mut line);
                line.len()
            }
        };
        self.pieces.iter().map(length).sum()
    }

    /// Appends the text to `out`, with one of `numbers` per placeholder.
    pub fn write(&self, numbers: &[u64], out: &mut Vec<u8>) {
        self.write_with(numbers.into(), out);
    }

    /// Appends the text with these values to `out`.
    pub(crate) fn write_with(&self, values: Values<'_>, out: &mut Vec<u8>) {
        let mut numbers = values.numbers.iter();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => out.extend_from_slice(literal),
                Piece::Number(Numbers { first, digits, .. }) => {
                    let number = numbers.next().unwrap_or(first);
                    // Writing to memory cannot fail.
                    let _ = write!(out, "{number:0digits$}");
                }
                Piece::Data { content, .. } => {
                    let number = *numbers.next().unwrap_or(&0);
                    match content {
                        Content::Number => _ = write!(out, "{number}"),
                        Content::Rows(rows) => out.extend_from_slice(rows.get(number)),
                        Content::Filler(sizes) => out.resize(out.len() + size_of(sizes, number), b'x'),
                    }
                }
                Piece::OfSession { value, in_path } => {
                    out.extend_from_slice(&values.value_of_session(*value, *in_path));
                }
                Piece::CookieLine => values.cookie_line(out),
            }
        }
    }
}

/// The range that bytes begin with, and its length.
fn range_at(bytes: &[u8]) -> Option<(Numbers, usize)> {
    if bytes.first() != Some(&b'{') {
        return None;
    }
    let length = bytes.iter().take(MAX_RANGE_BYTES).position(|byte| *byte == b'}')? + 1;
    let range = std::str::from_utf8(&bytes[..length]).ok()?;
    Some((Numbers::parse(range).ok()?, length))
}

impl Numbers {
    /// How many numbers there are; at least 1.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.last - self.first + 1
    }

    /// Parses `{a..b}`.
    fn parse(range: &str) -> Result<Self, RangeError> {
        let malformed = || RangeError::Malformed(range.to_owned());
        let inner = range.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let (first, last) = inner.and_then(|inner| inner.split_once("..")).ok_or_else(malformed)?;
        let number = |text: &str| {
            let digits =
                (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten().ok_or_else(malformed)
        };
        let digits = if first.starts_with('0') { first.len() } else { 1 };
        let numbers = Self { first: number(first)?, last: number(last)?, digits };
        if numbers.first > numbers.last || numbers.last - numbers.first >= MAX_NUMBERS {
            return Err(RangeError::Bounds(range.to_owned()));
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, numbers: &[u64]) -> String {
        let mut out = Vec::new();
        let text = Text::parse(text).unwrap();
        text.write(numbers, &mut out);
        assert_eq!(text.length(numbers.into()), out.len());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_fill_their_placeholders() {
        assert_eq!(written("/get/{1..100}", &[7]), "/get/7");
        assert_eq!(written("{0..9}-{0..9}", &[1, 2]), "1-2");
        assert_eq!(written("{001..120}x", &[42]), "042x");
        assert_eq!(written("", &[]), "");
        assert_eq!(written("{0..100}{1..1000}", &[0, 1000]), "01000");
        let places: Vec<_> = Text::parse("a{5..9}").unwrap().ranges().map(|range| range.count()).collect();
        assert_eq!(places, [5]);
    }

    #[test]
    fn rows_and_numbers_of_data_fill_their_placeholders() {
        let mut text = Text::parse("/{1..9}/").unwrap();
        text.push_data(0, Content::Rows(Arc::new(Rows::new(["ada", ""]))));
        text.push(b"-");
        text.push_data(1, Content::Number);
        text.push_data(2, Content::Filler([3, 0].into()));
        for (numbers, expected) in
            [([7, 0, 1000, 0], "/7/ada-1000xxx"), ([7, 1, 0, 1], "/7/-0"), ([7, 2, 0, 2], "/7/-0")]
        {
            let mut out = Vec::new();
            text.write(&numbers, &mut out);
            assert_eq!(
                (String::from_utf8(out).unwrap().as_str(), text.length(numbers.as_slice().into())),
                (expected, expected.len())
            );
        }
        let places: Vec<Place> = text.places().collect();
        assert_eq!(places[1..], [0, 1, 2].map(Place::Data));
        assert_eq!(text.constant(), None);
    }

    #[test]
    fn values_of_a_session_fill_their_placeholders_without_numbers() {
        let mut text = Text::from("/{".to_owned());
        text.push_of_session(1, true);
        text.push_of_session(1, false);
        text.push_cookie_line();
        text.push_of_session(7, false);
        let of_session = [Box::from(&b"a"[..]), Box::from(&b"b c"[..])];
        for (cookies, line) in [("", ""), ("d=e", "Cookie: d=e\r\n")] {
            let values = Values { numbers: &[], of_session: &of_session, cookies: cookies.as_bytes() };
            let mut out = Vec::new();
            text.write_with(values, &mut out);
            let expected = format!("/{{b%20cb c{line}");
            assert_eq!(
                (String::from_utf8(out).unwrap().as_str(), text.length(values)),
                (expected.as_str(), expected.len())
            );
        }
        assert_eq!((text.places().count(), text.as_literal()), (0, None));
    }

    #[test]
    fn invalid_range_is_named_in_error() {
        for text in
            ["{", "}", "a{1..2", "{}", "{1}", "{1..}", "{a..b}", "{1..2}}", "{-1..2}", "{1,2}", "{{1..2}}"]
        {
            assert!(matches!(Text::parse(text), Err(RangeError::Malformed(_))), "{text}");
        }
        // Padding wider than any number.
        let zeros = format!("{{{}1..2}}", "0".repeat(70_000));
        assert!(matches!(Text::parse(&zeros), Err(RangeError::Malformed(_))));
        for text in ["{2..1}", "{0..1000000000}", "{0..18446744073709551615}"] {
            assert!(matches!(Text::parse(text), Err(RangeError::Bounds(_))), "{text}");
        }
    }
}
