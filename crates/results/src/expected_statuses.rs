//! HTTP statuses that a load expects. Responses with any other status are errors.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Lowest and highest status of a final response that HTTP/1.1 and HTTP/2 can carry.
const STATUSES: std::ops::RangeInclusive<u16> = 200..=999;
/// First digits of classes of statuses: HTTP defines no others (RFC 9110, section 15).
const CLASSES: std::ops::RangeInclusive<u16> = 2..=5;
/// First status that is an error if no statuses are expected explicitly.
pub const FIRST_ERROR_STATUS: u16 = 400;

/// Expected statuses; not empty.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct ExpectedStatuses(Vec<StatusPattern>);

/// One status, or all of a class.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StatusPattern {
    /// Such as 304.
    Code(u16),
    /// First digit, such as 2 for `2xx`.
    Class(u16),
}

/// Text that is not a status.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("expected a status such as 200, or a class such as 2xx")]
pub struct InvalidStatus;

impl ExpectedStatuses {
    /// `None` if there are none: then no response could be right.
    #[must_use]
    pub fn new(patterns: Vec<StatusPattern>) -> Option<Self> {
        (!patterns.is_empty()).then_some(Self(patterns))
    }

    /// The patterns, in the order given.
    #[must_use]
    pub fn patterns(&self) -> &[StatusPattern] {
        &self.0
    }

    /// True if responses with this status are expected.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|pattern| match pattern {
            StatusPattern::Code(code) => *code == status,
            StatusPattern::Class(class) => *class == status / 100,
        })
    }
}

/// True if a status is an error when no statuses are expected explicitly.
pub(super) fn is_error_by_default(status: u16) -> bool {
    status >= FIRST_ERROR_STATUS
}

impl FromStr for StatusPattern {
    type Err = InvalidStatus;

    fn from_str(text: &str) -> Result<Self, InvalidStatus> {
        let text = text.trim();
        let class = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"));
        let digits = class.unwrap_or(text);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidStatus);
        }
        match (digits.parse().map_err(|_| InvalidStatus)?, class) {
            (number, None) if STATUSES.contains(&number) => Ok(Self::Code(number)),
            (number, Some(_)) if CLASSES.contains(&number) => Ok(Self::Class(number)),
            _ => Err(InvalidStatus),
        }
    }
}

impl fmt::Display for StatusPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Class(class) => write!(f, "{class}xx"),
        }
    }
}

/// As on the command line: `200,3xx`.
impl fmt::Display for ExpectedStatuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&patterns.join(","))
    }
}

impl TryFrom<Vec<String>> for ExpectedStatuses {
    type Error = InvalidStatus;

    fn try_from(texts: Vec<String>) -> Result<Self, InvalidStatus> {
        let patterns = texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        Self::new(patterns).ok_or(InvalidStatus)
    }
}

impl From<ExpectedStatuses> for Vec<String> {
    fn from(expected: ExpectedStatuses) -> Self {
        expected.0.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_classes_are_read_and_matched() {
        let expected = ExpectedStatuses::try_from(vec!["2xx".to_owned(), "304".to_owned()]).unwrap();
        let accepted: Vec<u16> =
            [199, 200, 299, 300, 304, 305].into_iter().filter(|status| expected.contains(*status)).collect();
        assert_eq!(accepted, [200, 299, 304]);
        assert_eq!(expected.to_string(), "2xx,304");
        assert_eq!(serde_json::to_string(&expected).unwrap(), r#"["2xx","304"]"#);
        assert_eq!(serde_json::from_str::<ExpectedStatuses>(r#"["2xx","304"]"#).unwrap(), expected);
        assert!(serde_json::from_str::<ExpectedStatuses>("[]").is_err());
    }

    #[test]
    fn other_texts_are_not_statuses() {
        for text in [
            "", "xx", "0xx", "1xx", "100", "199", "1000", "10xx", "6xx", "9xx", "2x", "+200", "-2xx",
            "200-299", "ok",
        ] {
            assert_eq!(text.parse::<StatusPattern>(), Err(InvalidStatus), "{text}");
        }
    }
}
