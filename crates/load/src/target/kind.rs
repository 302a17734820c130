//! Kinds of requests: several templates with weights, each checked and measured apart.

use super::{RequestTemplate, Text};
use crate::error::ErrorKind;
use results::ExpectedStatuses;
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
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kind {
    /// Name in results.
    pub name: String,
    /// Path and query for results, as written.
    pub shown_path: String,
    /// Right statuses; `None`: no check.
    pub status: Option<ExpectedStatuses>,
    /// Right sizes of responses, bytes, heads included.
    pub bytes: RangeInclusive<u64>,
}

impl Kind {
    pub(super) fn has_checks(&self) -> bool {
        self.status.is_some() || self.bytes != (0..=u64::MAX)
    }

    /// The first check that a response fails.
    pub(crate) fn fault(&self, status: u16, bytes: u64) -> Option<ErrorKind> {
        if self.status.as_ref().is_some_and(|expected| !expected.contains(status)) {
            return Some(ErrorKind::CheckStatus);
        }
        (!self.bytes.contains(&bytes)).then_some(ErrorKind::CheckSize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_checked_by_status_then_size() {
        let kind = |status: &[&str], bytes| Kind {
            name: "buy".to_owned(),
            shown_path: "/".to_owned(),
            status: ExpectedStatuses::new(status.iter().map(|pattern| pattern.parse().unwrap()).collect()),
            bytes,
        };
        let any = kind(&[], 0..=u64::MAX);
        assert_eq!((any.fault(500, 0), any.fault(200, u64::MAX)), (None, None));
        let strict = kind(&["2xx", "404"], 10..=20);
        for (status, bytes, fault) in [
            (204, 10, None),
            (404, 20, None),
            (500, 15, Some(ErrorKind::CheckStatus)),
            (301, 5, Some(ErrorKind::CheckStatus)),
            (200, 9, Some(ErrorKind::CheckSize)),
            (200, 21, Some(ErrorKind::CheckSize)),
        ] {
            assert_eq!(strict.fault(status, bytes), fault, "{status} {bytes}");
        }
    }
}
