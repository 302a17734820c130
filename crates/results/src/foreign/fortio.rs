//! fortio's JSON (`fortio load -json FILE`).
//!
//! Times are in seconds, in buckets between fixed bounds whose width is a tenth of the value or more; percentiles are interpolated
//! within a bucket. A request's time starts with its send.

use super::fields::{array, at, count, number, text};
use super::{ForeignError, ForeignResult, Step, figure_of_percentile};
use crate::clock::Clock;
use crate::figure::Figure;
use serde_json::Value;

const US_IN_S: f64 = 1e6;
const NS_IN_S: f64 = 1e9;
/// Beginnings of results of a good request, over HTTP, TCP and gRPC.
const GOOD: [&str; 4] = ["2", "3", "OK", "SERVING"];

pub(super) fn is_one(document: &Value) -> bool {
    at(document, &["DurationHistogram"]).is_some()
}

pub(super) fn read(document: &Value) -> Result<ForeignResult, ForeignError> {
    let mut result = ForeignResult::new("fortio", Clock::ServiceTime);
    let histogram = at(document, &["DurationHistogram"]).unwrap_or(&Value::Null);
    result.version = text(document, &["Version"]);
    result.target = text(document, &["URL"]).or_else(|| text(document, &["Destination"]));
    result.started_at = text(document, &["StartTime"]);
    result.duration_s = number(document, &["ActualDuration"]).map(|nanoseconds| nanoseconds / NS_IN_S);
    result.offered = text(document, &["RequestedQPS"]).and_then(|rate| rate.parse().ok());
    result.connections = count(document, &["NumThreads"]).and_then(|threads| usize::try_from(threads).ok());
    result.rate_completed = number(document, &["ActualQPS"]);
    result.answered = count(histogram, &["Count"]);
    result.add_times(histogram, &[("Avg", Figure::Mean), ("Max", Figure::Max)], US_IN_S)?;
    for percentile in array(histogram, &["Percentiles"]) {
        let both = number(percentile, &["Percentile"]).zip(number(percentile, &["Value"]));
        let (at, value) = both.ok_or_else(|| ForeignError::new("fortio: a percentile lacks its Value"))?;
        result.times_us.extend(figure_of_percentile(at).map(|figure| (figure, value * US_IN_S)));
    }
    let step = |bucket: &Value| {
        Some(Step {
            from_us: number(bucket, &["Start"])? * US_IN_S,
            to_us: number(bucket, &["End"])? * US_IN_S,
            count: count(bucket, &["Count"])?,
        })
    };
    let buckets = array(histogram, &["Data"]);
    result.steps = buckets.iter().filter_map(step).collect();
    if result.steps.len() < buckets.len() {
        return Err(ForeignError::new("fortio: a bucket of its histogram lacks Start, End or Count"));
    }
    result.limit_service_time("from the send of each request");
    result.limit("percentiles are interpolated between the bounds of buckets, by default 1 ms apart");
    let bad: u64 = at(document, &["RetCodes"]).and_then(Value::as_object).map_or(0, |codes| {
        let bad = codes.iter().filter(|(code, _)| !GOOD.iter().any(|good| code.starts_with(good)));
        bad.filter_map(|(_, count)| count.as_u64()).fold(0, u64::saturating_add)
    });
    result.add_errors(bad);
    Ok(result)
}
