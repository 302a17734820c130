//! HdrHistogram logs (`.hlog`), versions 1.2 and 1.3 of the format with V2 histograms.
//!
//! A line has start, length and maximum of an interval and its compressed histogram, a tagged one `Tag=NAME,` before. Intervals
//! without a tag are read, or all of them if every one has one tag. A log does not tell the unit of its values: nanoseconds are
//! assumed, as by HistogramLogProcessor, and compared with the maximum in milliseconds.

use super::{ForeignError, ForeignResult, lines};
use crate::clock::Clock;
use crate::latency_histogram::LatencyHistogram;
use std::collections::BTreeMap;

const TOOL: &str = "HdrHistogram log";
/// Beginnings of comment lines with the start of the log: seconds since the epoch.
const START: &str = "#[StartTime: ";
/// Our own logs hold response times.
const OURS: &str = "#[meshmeter ";
/// A comment of our own logs before an interval: how many of its requests are recorded at the greatest value.
const WITHOUT_RESPONSE: &str = "#[Without a response: ";
const US_IN_MS: f64 = 1e3;
/// Each tag takes a histogram. Writers use a few.
const MAX_TAGS: usize = 64;
/// A maximum in the log may differ from that of the histogram by rounding.
const MAX_DIFFERENCE: f64 = 0.02;

pub(super) fn is_one(text: &str) -> bool {
    text.starts_with("#[") || text.starts_with("\"StartTimestamp\"")
}

pub(super) fn read(text: &str) -> Result<ForeignResult, ForeignError> {
    let clock = if text.contains(OURS) { Clock::ResponseTime } else { Clock::ServiceTime };
    let mut result = ForeignResult::new(TOOL, clock);
    let mut by_tag: BTreeMap<&str, (LatencyHistogram, f64)> = BTreeMap::new();
    let (mut is_other_unit, mut without_response) = (false, 0_u64);
    for (number, line) in lines(text) {
        if let Some(start) = line.strip_prefix(START) {
            result.started_at = start.split_whitespace().next().map(str::to_owned);
        }
        let wrong = |why: &str| ForeignError::new(format!("{TOOL}: line {number} {why}"));
        if let Some(told) = line.strip_prefix(WITHOUT_RESPONSE) {
            let count = told.split_whitespace().next().and_then(|count| count.parse::<u64>().ok());
            let count = count.ok_or_else(|| wrong("does not tell how many requests have no response"))?;
            without_response = without_response.saturating_add(count);
        }
        if line.starts_with('#') || line.starts_with("\"StartTimestamp\"") {
            continue;
        }
        let (tag, interval) = match line.strip_prefix("Tag=") {
            Some(tagged) => tagged.split_once(',').ok_or_else(|| wrong("ends after its tag"))?,
            None => ("", line),
        };
        let mut parts = interval.splitn(4, ',');
        let mut next = || parts.next().map(str::trim);
        let (Some(_), Some(length), Some(max_ms), Some(encoded)) = (next(), next(), next(), next()) else {
            return Err(wrong("is not an interval: it needs start, length, maximum and histogram"));
        };
        let histogram = LatencyHistogram::decode_ns(encoded.trim_matches('"'))
            .map_err(|error| wrong(&format!("has no histogram: {error}")))?;
        let max_us = max_ms.parse::<f64>().map_err(|_| wrong("has no maximum"))? * US_IN_MS;
        is_other_unit |= (max_us - histogram.max_us()).abs() > MAX_DIFFERENCE * max_us + 1.0;
        if by_tag.len() >= MAX_TAGS && !by_tag.contains_key(tag) {
            return Err(wrong("has one more tag, and there are too many"));
        }
        let length: f64 = length.parse().map_err(|_| wrong("has no length"))?;
        let (all, seconds) = by_tag.entry(tag).or_default();
        all.merge(&histogram);
        *seconds += length;
    }
    let (histogram, seconds) = match by_tag.remove("") {
        Some(untagged) => untagged,
        None if by_tag.len() == 1 => by_tag.pop_first().map(|(_, only)| only).unwrap_or_default(),
        None if by_tag.is_empty() => return Err(ForeignError::new(format!("{TOOL}: it has no interval"))),
        None => {
            let tags: Vec<&str> = by_tag.into_keys().collect();
            return Err(ForeignError::new(format!("{TOOL}: every interval has a tag: {}", tags.join(", "))));
        }
    };
    if is_other_unit {
        return Err(ForeignError::new(format!(
            "{TOOL}: its maxima are not its values in nanoseconds: the unit of its values is unknown"
        )));
    }
    result.duration_s = Some(seconds);
    if without_response > histogram.count() {
        return Err(ForeignError::new(format!(
            "{TOOL}: it tells of {without_response} requests without a response, and has {} in all",
            histogram.count()
        )));
    }
    result.failed = without_response;
    result.add_histogram(&histogram, without_response);
    result.rate_completed =
        result.answered.filter(|_| seconds > 0.0).map(|answered| answered as f64 / seconds);
    if without_response > 0 {
        result.limit("requests without a response rank above all others: it has no mean");
    }
    if result.clock == Clock::ServiceTime {
        result.limit_service_time("unless its writer corrected them, which a log does not tell");
    }
    result.limit("a log does not tell the offered rate: it is compared as a closed loop");
    Ok(result)
}
