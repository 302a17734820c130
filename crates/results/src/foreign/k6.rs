//! k6: the end-of-test summary (`--summary-export FILE`, or `handleSummary`'s data), and JSON lines (`--out json=FILE`).
//!
//! Times are milliseconds of `http_req_duration`: sending, waiting and receiving of one request, without the wait for a connection
//! and without the lateness of an iteration. A summary has no histogram, and by default neither p99 nor the number of samples per
//! metric; lines have every request.

use super::fields::{at, count, number, text};
use super::{ForeignError, ForeignResult, Urls, lines};
use crate::clock::Clock;
use crate::figure::Figure;
use crate::latency_histogram::LatencyHistogram;
use serde_json::Value;
use std::time::Duration;

const TOOL: &str = "k6";
const DURATION: &str = "http_req_duration";
const US_IN_MS: f64 = 1000.0;
const MS_IN_S: f64 = 1000.0;

const PERCENTILES: [(&str, Figure); 10] = [
    ("avg", Figure::Mean),
    ("med", Figure::P50),
    ("p(50)", Figure::P50),
    ("p(75)", Figure::P75),
    ("p(90)", Figure::P90),
    ("p(95)", Figure::P95),
    ("p(99)", Figure::P99),
    ("p(99.9)", Figure::P99_9),
    ("p(99.99)", Figure::P99_99),
    ("max", Figure::Max),
];

pub(super) fn is_summary(document: &Value) -> bool {
    at(document, &["metrics"]).is_some_and(Value::is_object)
}

pub(super) fn is_line(line: &Value) -> bool {
    let kind = line.get("type").and_then(Value::as_str);
    line.get("metric").is_some() && matches!(kind, Some("Metric" | "Point"))
}

/// Values of a metric: flat in an exported summary, under `values` in that of `handleSummary`.
fn values<'a>(document: &'a Value, metric: &str) -> Option<&'a Value> {
    let metric = at(document, &["metrics", metric])?;
    Some(metric.get("values").unwrap_or(metric))
}

pub(super) fn read_summary(document: &Value) -> Result<ForeignResult, ForeignError> {
    let Some(duration) = values(document, DURATION) else {
        return Err(ForeignError::new(format!(
            "k6: it has no metric `{DURATION}`: only HTTP requests can be compared"
        )));
    };
    let mut result = ForeignResult::new(TOOL, Clock::ServiceTime);
    result.add_times(duration, &PERCENTILES, US_IN_MS)?;
    let requests = values(document, "http_reqs");
    result.answered = requests.and_then(|requests| count(requests, &["count"]));
    result.rate_completed = requests.and_then(|requests| number(requests, &["rate"]));
    result.duration_s = number(document, &["state", "testRunDurationMs"]).map(|ms| ms / MS_IN_S);
    result.connections =
        values(document, "vus_max").and_then(|users| number(users, &["max"])).map(|users| users as usize);
    say_limits(&mut result);
    result.limit("a summary has no histogram: no figure has an interval");
    let failed = values(document, "http_req_failed");
    // Of the rate "failed", `passes` counts the failed ones.
    result.add_errors(failed.and_then(|failed| count(failed, &["passes"])).unwrap_or(0));
    Ok(result)
}

fn say_limits(result: &mut ForeignResult) {
    result.limit_service_time("http_req_duration starts with the send");
    result.limit("the file does not tell the offered rate: it is compared as a closed loop");
}

pub(super) fn read_lines(text_of_lines: &str) -> Result<ForeignResult, ForeignError> {
    let mut result = ForeignResult::new(TOOL, Clock::ServiceTime);
    let mut histogram = LatencyHistogram::new();
    let mut urls = Urls::default();
    for (number_of_line, line) in lines(text_of_lines) {
        let point: Value = serde_json::from_str(line)
            .map_err(|error| ForeignError::new(format!("k6: line {number_of_line} is not JSON: {error}")))?;
        let is_time = text(&point, &["type"]).as_deref() == Some("Point")
            && text(&point, &["metric"]).as_deref() == Some(DURATION);
        if !is_time {
            continue;
        }
        let wrong = || ForeignError::new(format!("k6: line {number_of_line} has no time of a request"));
        let value = number(&point, &["data", "value"]).ok_or_else(wrong)?;
        let duration = Duration::try_from_secs_f64(value / MS_IN_S).map_err(|_| wrong())?;
        result.started_at = result.started_at.or_else(|| text(&point, &["data", "time"]));
        let tag = |name: &str| text(&point, &["data", "tags", name]);
        if let Some(url) = tag("url").or_else(|| tag("name")) {
            urls.add(&url);
        }
        if text(&point, &["data", "tags", "expected_response"]).as_deref() == Some("false") {
            result.failed += 1;
        } else {
            histogram.record(duration);
        }
    }
    result.target = urls.target();
    result.add_histogram(&histogram, 0);
    say_limits(&mut result);
    if result.failed > 0 {
        result.limit("requests whose response was not expected rank above all others");
    }
    Ok(result)
}
