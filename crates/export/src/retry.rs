//! Meaning of a response, and when to retry.

use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};
use std::time::Duration;

/// First pause after a failure; it doubles with each further failure.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
/// Maximum pause, unless the receiver asks for a longer one.
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// Maximum pause that a receiver can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Meaning of a status for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Meaning {
    /// The request was accepted.
    Delivered,
    /// The same request may be accepted later.
    Retry,
    /// The request will never be accepted.
    Refused,
}

/// Exponential backoff between attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(MIN_BACKOFF)
    }
}

impl Backoff {
    /// The pause before the next attempt: the one that the receiver asks for, or twice the last one. Never
    /// zero: a receiver that asks for zero would make this process retry without pause beside the load.
    pub(crate) fn next(&mut self, asked_for: Option<Duration>) -> Duration {
        let pause = self.0;
        self.0 = (self.0 * 2).min(MAX_BACKOFF);
        asked_for.map_or(pause, |asked_for| asked_for.clamp(MIN_BACKOFF, MAX_RETRY_AFTER))
    }
}

/// Remote write is retried after any 5xx and after 429. OTLP is retried only after 429 and the statuses that
/// mean that the receiver is busy or unavailable.
pub(crate) fn meaning(status: StatusCode, is_otlp: bool) -> Meaning {
    let comes_back = match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        _ if is_otlp => matches!(status.as_u16(), 502..=504),
        _ => status.is_server_error(),
    };
    if status.is_success() {
        Meaning::Delivered
    } else if comes_back {
        Meaning::Retry
    } else {
        Meaning::Refused
    }
}

/// The pause that a receiver asks for (`Retry-After`), in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(until.duration_since(now).try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_temporary_failures_are_retried() {
        for (status, remote_write, otlp) in [
            (200, Meaning::Delivered, Meaning::Delivered),
            (204, Meaning::Delivered, Meaning::Delivered),
            (302, Meaning::Refused, Meaning::Refused),
            (400, Meaning::Refused, Meaning::Refused),
            (415, Meaning::Refused, Meaning::Refused),
            (429, Meaning::Retry, Meaning::Retry),
            (500, Meaning::Retry, Meaning::Refused),
            (503, Meaning::Retry, Meaning::Retry),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!((meaning(status, false), meaning(status, true)), (remote_write, otlp), "{status}");
        }
    }

    #[test]
    fn backoff_doubles_unless_receiver_sets_retry_after() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next(None), Duration::from_millis(100));
        assert_eq!(backoff.next(Some(Duration::from_secs(3))), Duration::from_secs(3));
        assert_eq!(backoff.next(None), Duration::from_millis(400));
        for _ in 0..10 {
            backoff.next(None);
        }
        assert_eq!(backoff.next(None), MAX_BACKOFF);
        assert_eq!(backoff.next(Some(Duration::from_secs(86_400))), MAX_RETRY_AFTER);
        assert_eq!(backoff.next(Some(Duration::ZERO)), MIN_BACKOFF);
    }

    #[test]
    fn retry_after_is_parsed_as_seconds_or_date() {
        let now: jiff::Timestamp = "2026-11-06T08:49:30Z".parse().unwrap();
        for (text, expected_s) in [
            ("7", Some(7)),
            ("Fri, 06 Nov 2026 08:49:37 GMT", Some(7)),
            ("Fri, 06 Nov 2026 08:49:00 GMT", Some(0)),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            assert_eq!(retry_after(&headers, now), expected_s.map(Duration::from_secs), "{text}");
        }
    }
}
