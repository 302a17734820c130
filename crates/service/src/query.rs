//! The query of a request, which may override the server's settings for its response. No I/O.

use crate::settings::{Answer, EventSettings, STATUSES};
use experiment::settings::service::MAX_CPU_TIME;
use experiment::topology::distribution::{Distribution, Times};
use results::units::{UnitError, parse_duration, parse_fraction, parse_size};
use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

/// An invalid value in a query.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("query `{key}`: {problem}")]
pub struct QueryError {
    key: &'static str,
    problem: String,
}

/// Applies the query to an answer; see [`Answer::with_query`].
pub(crate) fn apply(query: &str, mut answer: Answer) -> Result<Answer, QueryError> {
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "size" => answer.body_bytes = read("size", value, parse_size)?,
            "delay" => answer.delay = read("delay", value, parse_duration)?,
            "cpu-time" => answer.cpu_time = read("cpu-time", value, parse_cpu_time)?,
            "error-rate" => answer.error_fraction = read("error-rate", value, parse_fraction)?,
            "status" => answer.status = read_status(value)?,
            "events" => answer.events.count = read("events", value, parse_count)?,
            "first" => answer.events.first = read("first", value, parse_times)?,
            "gap" => answer.events.gap = read("gap", value, parse_times)?,
            "event-bytes" => answer.events.event_bytes = read("event-bytes", value, parse_event_bytes)?,
            _ => {}
        }
    }
    Ok(answer)
}

fn read<T, E: Display>(
    key: &'static str,
    value: &str,
    parse: fn(&str) -> Result<T, E>,
) -> Result<T, QueryError> {
    parse(&decoded(value)).map_err(|error| QueryError { key, problem: error.to_string() })
}

fn parse_count(text: &str) -> Result<u64, &'static str> {
    text.parse().ok().filter(|count| *count > 0).ok_or("expected a number of events, for example `20`")
}

fn parse_times(text: &str) -> Result<Distribution, UnitError> {
    text.parse().map(|Times(times)| times)
}

fn parse_event_bytes(text: &str) -> Result<u64, String> {
    at_most(EventSettings::MAX_EVENT_BYTES, parse_size(text), "expected at most 64KiB")
}

fn parse_cpu_time(text: &str) -> Result<Duration, String> {
    at_most(MAX_CPU_TIME, parse_duration(text), "expected at most 1s of CPU")
}

/// The value that was read, unless it is above its maximum.
fn at_most<T: Copy + PartialOrd>(most: T, read: Result<T, UnitError>, problem: &str) -> Result<T, String> {
    match read {
        Ok(value) if value > most => Err(problem.to_owned()),
        other => other.map_err(|error| error.to_string()),
    }
}

fn read_status(value: &str) -> Result<u16, QueryError> {
    let status = value.parse().ok().filter(|status| value.len() == 3 && STATUSES.contains(status));
    status.ok_or_else(|| QueryError {
        key: "status",
        problem: format!(
            "expected a status from {} to {}, for example `503`",
            STATUSES.start(),
            STATUSES.end()
        ),
    })
}

/// Decodes `%XX`. A `%` that is not followed by two hexadecimal digits stands for itself, so that `0.1%` may
/// be typed as is.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&plain).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::topology::distribution::Distribution::{Exponential, Fixed, LogNormal, Uniform};
    use proptest::prelude::*;

    #[test]
    fn query_overrides_answer() {
        let expected = Answer {
            status: 503,
            body_bytes: 1024,
            delay: Duration::from_millis(5),
            cpu_time: Duration::from_micros(100),
            error_fraction: 0.001,
            events: EventSettings::default(),
        };
        for query in [
            "size=1KiB&delay=5ms&cpu-time=100us&error-rate=0.1%&status=503",
            "size=1KiB&delay=5ms&cpu-time=0.1ms&error-rate=0.1%25&status=503",
            "size=9&flavour=sour&size=1024&delay=5000us&&cpu-time=100us&error-rate=0.001&status=503&x",
        ] {
            assert_eq!(apply(query, Answer::default()), Ok(expected), "{query}");
        }
        assert_eq!(apply("", expected), Ok(expected));
        assert_eq!(apply("status=404", expected), Ok(Answer { status: 404, ..expected }));
    }

    #[test]
    fn invalid_value_error_names_key_and_expected_value() {
        for (query, words) in [
            ("size=big", ["query `size`", "expected bytes"]),
            ("size", ["query `size`", "expected bytes"]),
            ("delay=5", ["query `delay`", "a unit is missing"]),
            ("cpu-time=2s", ["query `cpu-time`", "at most 1s"]),
            ("error-rate=200%", ["query `error-rate`", "0% to 100%"]),
            ("status=100", ["query `status`", "from 200 to 599"]),
            ("status=0200", ["query `status`", "from 200 to 599"]),
            ("events=0", ["query `events`", "number of events"]),
            ("first=exp:5", ["query `first`", "a unit is missing"]),
            ("events=3&gap=uniform:9ms..5ms", ["query `gap`", "`uniform:5ms..15ms`"]),
            ("events=3&gap=log-normal:0s..5ms", ["query `gap`", "`log-normal:10ms..80ms`"]),
            ("events=3&gap=gamma:5ms", ["query `gap`", "`exp:10ms`"]),
            ("event-bytes=1MiB", ["query `event-bytes`", "at most 64KiB"]),
        ] {
            let message = apply(query, Answer::default()).unwrap_err().to_string();
            assert!(words.iter().all(|words| message.contains(words)), "{query}: {message}");
        }
    }

    #[test]
    fn stream_has_number_times_and_size() {
        let of = |first, gap| EventSettings { count: 20, first, gap, event_bytes: 40 };
        for (query, expected) in [
            ("events=20&first=50ms&gap=exp:10ms&event-bytes=40", of(Fixed(0.05), Exponential { mean: 0.01 })),
            (
                "event-bytes=40B&gap=uniform%3A5ms..15ms&events=20&first=log-normal:50ms..1s",
                of(LogNormal { median: 0.05, p99: 1.0 }, Uniform { low: 0.005, high: 0.015 }),
            ),
        ] {
            assert_eq!(apply(query, Answer::default()).unwrap().events, expected, "{query}");
        }
        assert_eq!(apply("gap=10ms", Answer::default()).unwrap().events.count, 0);
    }

    proptest! {
        #[test]
        fn queries_never_panic(query in "((size|delay|cpu-time|error-rate|status|events|first|gap|event-bytes|x)=[0-9a-z%.é]{0,8}&?){0,4}.{0,20}") {
            let _ = apply(&query, Answer::default());
        }
    }
}
