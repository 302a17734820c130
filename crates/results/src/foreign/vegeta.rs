//! vegeta: `vegeta report -type=json`, and `vegeta encode -to=json`, a line per request.
//!
//! Times are in nanoseconds, from the send. A report has percentiles estimated by a t-digest; lines have every request.

use super::fields::{array, at, count, needed, number, text};
use super::{ForeignError, ForeignResult, Urls, lines};
use crate::clock::Clock;
use crate::figure::Figure;
use crate::latency_histogram::LatencyHistogram;
use serde_json::Value;

const TOOL: &str = "vegeta";
const US_IN_NS: f64 = 1e-3;
const NS_IN_S: f64 = 1e9;

const PERCENTILES: [(&str, Figure); 6] = [
    ("mean", Figure::Mean),
    ("50th", Figure::P50),
    ("90th", Figure::P90),
    ("95th", Figure::P95),
    ("99th", Figure::P99),
    ("max", Figure::Max),
];

pub(super) fn is_report(document: &Value) -> bool {
    at(document, &["latencies"]).is_some() && at(document, &["requests"]).is_some()
}

pub(super) fn is_line(line: &Value) -> bool {
    ["latency", "timestamp", "code"].iter().all(|key| line.get(key).is_some())
}

pub(super) fn read_report(document: &Value) -> Result<ForeignResult, ForeignError> {
    let mut result = ForeignResult::new(TOOL, Clock::ServiceTime);
    let requests = count(document, &["requests"]).unwrap_or(0);
    result.add_times(&document["latencies"], &PERCENTILES, US_IN_NS)?;
    result.answered = Some(requests);
    result.offered = Some(needed(document, &["rate"], TOOL)?);
    result.rate_completed = number(document, &["throughput"]);
    let succeeded = number(document, &["success"]).unwrap_or(1.0).clamp(0.0, 1.0);
    result.errors = ((1.0 - succeeded) * requests as f64).round() as u64;
    result.duration_s = number(document, &["duration"]).map(|nanoseconds| nanoseconds / NS_IN_S);
    result.started_at = text(document, &["earliest"]);
    say_limits(&mut result);
    result.limit("percentiles are estimates of a t-digest, without a histogram: no figure has an interval");
    if !array(document, &["errors"]).is_empty() {
        result.limit("the times of failed requests are among those of the others");
    }
    Ok(result)
}

fn say_limits(result: &mut ForeignResult) {
    result.limit_service_time("from the send of each request");
}

pub(super) fn read_lines(text_of_lines: &str) -> Result<ForeignResult, ForeignError> {
    let mut result = ForeignResult::new(TOOL, Clock::ServiceTime);
    let mut histogram = LatencyHistogram::new();
    let mut urls = Urls::default();
    for (number_of_line, line) in lines(text_of_lines) {
        let wrong = |why: &str| ForeignError::new(format!("vegeta: line {number_of_line} {why}"));
        let request: Value =
            serde_json::from_str(line).map_err(|error| wrong(&format!("is not JSON: {error}")))?;
        let latency_ns = count(&request, &["latency"]).ok_or_else(|| wrong("has no latency"))?;
        result.started_at = result.started_at.or_else(|| text(&request, &["timestamp"]));
        if let Some(url) = text(&request, &["url"]) {
            urls.add(&url);
        }
        let is_answered = text(&request, &["error"]).unwrap_or_default().is_empty()
            && count(&request, &["code"]).is_some_and(|code| code > 0);
        if is_answered {
            histogram.record_ns(latency_ns);
        } else {
            result.failed += 1;
        }
    }
    result.target = urls.target();
    result.add_histogram(&histogram, 0);
    say_limits(&mut result);
    result
        .limit("lines do not tell the offered rate and the length of the attack: throughput is not compared");
    if result.failed > 0 {
        result.limit("requests with an error rank above all others");
    }
    Ok(result)
}
