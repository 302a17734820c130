//! Kinds of requests: several templates with weights, each checked and measured apart.

use super::{RequestTemplate, Text};
use crate::error::ErrorKind;
use crate::protocol::{Keep, KeptResponse};
use results::{ExpectedStatuses, json_part};
use serde_json::Value;
use std::ops::RangeInclusive;

/// A kind of request.
#[derive(Clone, Debug)]
pub struct RequestKind {
    /// Share among the sum of all weights; at least 1.
    pub weight: u32,
    /// Path and query, from `/` on.
    pub path: Text,
    /// Method, headers and body.
    pub template: RequestTemplate,
    /// Name, and checks of responses.
    pub kind: Kind,
}

/// Name and checks of a kind of request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Kind {
    /// Name in results.
    pub name: String,
    /// Path and query for results, as written.
    pub shown_path: String,
    /// Checks of responses.
    pub expect: Expectation,
}

/// Checks of responses, in the order in which they are made.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Expectation {
    /// Right statuses; `None`: no check.
    pub status: Option<ExpectedStatuses>,
    /// Right sizes of responses, bytes, heads included; `None`: no check.
    pub bytes: Option<RangeInclusive<u64>>,
    /// Texts that bodies contain.
    pub text: Vec<String>,
    /// JSON pointers into bodies, and the values there: the text of a string, anything else as JSON.
    pub json: Vec<(String, String)>,
}

impl Expectation {
    /// True if anything is checked.
    pub(super) fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Parts of responses that the checks look into.
    pub(crate) fn keep(&self) -> Keep {
        Keep { body: !self.text.is_empty() || !self.json.is_empty(), fields: false }
    }

    /// The first check that a response fails. `kept`: its kept parts.
    pub(crate) fn fault(&self, status: u16, bytes: u64, kept: Option<&KeptResponse>) -> Option<ErrorKind> {
        if self.status.as_ref().is_some_and(|expected| !expected.contains(status)) {
            return Some(ErrorKind::CheckStatus);
        }
        if self.bytes.as_ref().is_some_and(|expected| !expected.contains(&bytes)) {
            return Some(ErrorKind::CheckSize);
        }
        let body = kept.map_or(&[][..], |kept| &kept.body);
        if self.text.iter().any(|text| !contains(body, text)) {
            return Some(ErrorKind::CheckText);
        }
        (!self.json.is_empty() && !self.has_values(body)).then_some(ErrorKind::CheckJson)
    }

    fn has_values(&self, body: &[u8]) -> bool {
        let is_there = |(pointer, expected): &(String, String)| {
            let part = json_part(body, pointer).ok().flatten();
            part.is_some_and(|part| part == expected.as_str() || is_same_value(&part, expected))
        };
        self.json.iter().all(is_there)
    }
}

/// True for one JSON value in two forms, such as 1.10 and 1.1. Numbers of many digits are compared by them alone.
fn is_same_value(one: &str, other: &str) -> bool {
    const EXACT_DIGITS: usize = 15;
    if one.len().max(other.len()) > EXACT_DIGITS && !one.starts_with(['{', '[']) {
        return false;
    }
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    value(one).is_some_and(|one| value(other) == Some(one))
}

fn contains(body: &[u8], text: &str) -> bool {
    match std::str::from_utf8(body) {
        Ok(body) => body.contains(text),
        Err(_) => body.windows(text.len().max(1)).any(|window| window == text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_checked_by_status_then_size() {
        let expect = |status: &[&str], bytes| Expectation {
            status: ExpectedStatuses::new(status.iter().map(|pattern| pattern.parse().unwrap()).collect()),
            bytes,
            ..Expectation::default()
        };
        let any = expect(&[], None);
        assert_eq!((any.fault(500, 0, None), any.fault(200, u64::MAX, None)), (None, None));
        let strict = expect(&["2xx", "404"], Some(10..=20));
        for (status, bytes, fault) in [
            (204, 10, None),
            (404, 20, None),
            (500, 15, Some(ErrorKind::CheckStatus)),
            (301, 5, Some(ErrorKind::CheckStatus)),
            (200, 9, Some(ErrorKind::CheckSize)),
            (200, 21, Some(ErrorKind::CheckSize)),
        ] {
            assert_eq!(strict.fault(status, bytes, None), fault, "{status} {bytes}");
        }
    }

    #[test]
    fn bodies_are_checked_for_texts_then_json() {
        let pair = |pointer: &str, value: &str| (pointer.to_owned(), value.to_owned());
        let expect = Expectation {
            text: vec!["ok".to_owned(), "é".to_owned()],
            json: vec![pair("/a/0", "é"), pair("/b", "1"), pair("/c", "null")],
            ..Expectation::default()
        };
        assert!(expect.keep().body && !Expectation::default().keep().body);
        let (text, json) = (Some(ErrorKind::CheckText), Some(ErrorKind::CheckJson));
        for (body, fault) in [
            (&br#"{"a": ["\xC3\xA9"], "ok": 1}"#[..], text),
            ("{\"a\": [\"é\"], \"b\": 1, \"c\": null, \"ok\": 2}".as_bytes(), None),
            ("{\"a\": [\"é\"], \"b\": 2, \"c\": null, \"ok\": 2}".as_bytes(), json),
            ("{\"a\": [\"é\"], \"b\": 1, \"ok\": 2}".as_bytes(), json),
            ("ok é".as_bytes(), json),
            (b"ok \xff", text),
            (b"", text),
        ] {
            let kept = KeptResponse { body: body.to_vec(), ..KeptResponse::default() };
            assert_eq!(expect.fault(200, 0, Some(&kept)), fault, "{}", body.escape_ascii());
        }
        assert!(
            contains("ok é\u{fffd}".as_bytes(), "é")
                && contains(b"\xff ok", "ok")
                && !contains(b"\xff", "ok")
        );
    }
}
