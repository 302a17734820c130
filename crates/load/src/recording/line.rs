//! Formats with an entry per line: instants alone, access logs of Envoy, nginx and Apache.

use super::{Entry, METHODS};
use crate::target::path_text;
use jiff::Timestamp;
use results::RecordingFormat;
use serde::Deserialize;

/// Maximum length of a request's path, bytes: as Envoy's limit on a whole head.
const MAX_PATH_BYTES: usize = 60 * 1024;
/// Maximum length of a timestamp, bytes.
const MAX_TIMESTAMP_BYTES: usize = 64;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Units of numbers by their digits, in nanoseconds: seconds have at most ten digits until the year 2286, when milliseconds since the
/// epoch have 13.
const SMALLER_UNITS: [(usize, i64); 3] = [(13, 1_000_000), (16, 1000), (19, 1)];

/// The fields of Envoy's JSON log that are read, with the names that Istio gives them.
#[derive(Deserialize)]
struct EnvoyJson {
    start_time: String,
    method: String,
    path: String,
}

/// The entry of a line; absent if the line is not understood.
pub(super) fn parse(line: &[u8]) -> Option<(RecordingFormat, Entry)> {
    match line.first()? {
        b'{' => {
            let EnvoyJson { start_time, method, path } = serde_json::from_slice(line).ok()?;
            let entry = entry(timestamp(&start_time)?, method.as_bytes(), path.as_bytes())?;
            Some((RecordingFormat::EnvoyJson, entry))
        }
        b'[' => Some((RecordingFormat::Envoy, envoy(&line[1..])?)),
        _ => match common(line) {
            Some(entry) => Some((RecordingFormat::CommonLog, entry)),
            None => Some((RecordingFormat::Instants, Entry { at: instant(line)?, request: None })),
        },
    }
}

/// An entry with a request that can be sent again; absent if it cannot.
pub(super) fn entry(at: i64, method: &[u8], target: &[u8]) -> Option<Entry> {
    let method = METHODS.iter().position(|known| known.as_str().as_bytes() == method)?;
    let path = path_of(target)?;
    Some(Entry { at, request: Some((u8::try_from(method).ok()?, path)) })
}

/// Path and query of a request's target, encoded as requests can have them.
fn path_of(target: &[u8]) -> Option<String> {
    let is_absolute = target.starts_with(b"http://") || target.starts_with(b"https://");
    let path = if is_absolute {
        let host = target.windows(2).position(|two| two == b"//")? + 2;
        let path = target[host..].iter().position(|byte| b"/?#".contains(byte));
        &target[path.map_or(target.len(), |path| host + path)..]
    } else {
        target
    };
    let path = path.split(|byte| *byte == b'#').next().unwrap_or_default();
    let slash = if path.starts_with(b"/") {
        ""
    } else if is_absolute {
        "/"
    } else {
        return None;
    };
    (path.len() <= MAX_PATH_BYTES).then(|| slash.to_owned() + &path_text(path))
}

/// An instant in RFC 3339, nanoseconds since the epoch.
pub(super) fn timestamp(text: &str) -> Option<i64> {
    let timestamp: Timestamp = text.parse().ok()?;
    timestamp.as_nanosecond().try_into().ok()
}

/// A number, or an instant in RFC 3339.
fn instant(line: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(line.get(..line.len().min(MAX_TIMESTAMP_BYTES))?).ok()?;
    if text.len() < line.len() {
        return None;
    }
    number(text).or_else(|| timestamp(text))
}

/// Seconds as a decimal number, or milliseconds, microseconds or nanoseconds since the epoch, which have more digits; nanoseconds are
/// kept. Numbers since the epoch have more digits than a `f64`.
fn number(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = digits.fold(0, |nanos, digit| nanos * 10 + i64::from(digit - b'0'));
    let smaller = SMALLER_UNITS.iter().find(|(digits, _)| *digits == whole.len());
    let unit = smaller.map_or(NANOS_PER_SECOND, |(_, unit)| *unit);
    let whole: i64 = whole.parse().ok()?;
    Some(sign * whole.checked_mul(unit)?.checked_add(nanos / (NANOS_PER_SECOND / unit))?)
}

/// Text up to a byte, which is near, and the text after it.
fn until(text: &[u8], end: u8) -> Option<(&str, &[u8])> {
    let length = text.iter().take(MAX_TIMESTAMP_BYTES).position(|byte| *byte == end)?;
    Some((std::str::from_utf8(&text[..length]).ok()?, &text[length + 1..]))
}

/// Envoy's default format after its first bracket: `2024-01-01T00:00:00.000Z] "GET /path HTTP/1.1" …`.
fn envoy(line: &[u8]) -> Option<Entry> {
    let (start_time, rest) = until(line, b']')?;
    let quoted = rest.strip_prefix(b" \"")?;
    let request = quoted.split(|byte| *byte == b'"').next()?;
    request_line(timestamp(start_time)?, request)
}

/// The common and the combined format of nginx and Apache: `… [10/Oct/2023:13:55:36 -0700] "GET /path HTTP/1.1" …`.
fn common(line: &[u8]) -> Option<Entry> {
    let bracket = line.windows(2).position(|two| two == b" [")? + 2;
    let (time, rest) = until(&line[bracket..], b']')?;
    let quoted = rest.strip_prefix(b" \"")?;
    let time = Timestamp::strptime("%d/%b/%Y:%H:%M:%S %z", time).ok()?;
    request_line(time.as_second().checked_mul(NANOS_PER_SECOND)?, &unescaped(quoted)?)
}

/// The content of a quoted field after its first quote, without the escapes of nginx and Apache.
fn unescaped(quoted: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let mut bytes = quoted.iter();
    loop {
        match bytes.next()? {
            b'"' => return Some(content),
            b'\\' => match bytes.next()? {
                b'x' => {
                    let digits = bytes.as_slice().get(..2)?;
                    content.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                    bytes = bytes.as_slice()[2..].iter();
                }
                letter => content.push(control_character(*letter).unwrap_or(*letter)),
            },
            other => content.push(*other),
        }
    }
}

/// The byte for which Apache writes this letter after a backslash (`ap_escape_logitem`).
fn control_character(letter: u8) -> Option<u8> {
    Some(match letter {
        b'b' => 0x08,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 0x0b,
        b'r' => b'\r',
        _ => return None,
    })
}

/// A request as its first line: `GET /path HTTP/1.1`.
fn request_line(at: i64, line: &[u8]) -> Option<Entry> {
    let method_end = line.iter().position(|byte| *byte == b' ')?;
    let (method, rest) = (&line[..method_end], &line[method_end + 1..]);
    let target_end = rest.iter().rposition(|byte| *byte == b' ')?;
    let (target, protocol) = (&rest[..target_end], &rest[target_end + 1..]);
    protocol.starts_with(b"HTTP/").then(|| entry(at, method, target)).flatten()
}
