//! The query of a request, which may override the server's settings for its response. No I/O.

use crate::settings::{Answer, STATUSES};
use experiment::settings::service::MAX_CPU_TIME;
use results::units::{parse_duration, parse_fraction, parse_size};
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

/// At most [`MAX_CPU_TIME`].
fn parse_cpu_time(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(time) if time > MAX_CPU_TIME => Err("expected at most 1s of CPU".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
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
    use proptest::prelude::*;

    #[test]
    fn query_overrides_answer() {
        let expected = Answer {
            status: 503,
            body_bytes: 1024,
            delay: Duration::from_millis(5),
            cpu_time: Duration::from_micros(100),
            error_fraction: 0.001,
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
        ] {
            let message = apply(query, Answer::default()).unwrap_err().to_string();
            assert!(words.iter().all(|words| message.contains(words)), "{query}: {message}");
        }
    }

    proptest! {
        #[test]
        fn queries_never_panic(query in "((size|delay|cpu-time|error-rate|status|x)=[0-9a-z%.é]{0,8}&?){0,4}.{0,20}") {
            let _ = apply(&query, Answer::default());
        }
    }
}
