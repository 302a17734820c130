//! Nighthawk's JSON (`nighthawk_client --output-format json`).
//!
//! Protobuf's JSON: counts in quotes, durations such as `0.000059131s`. The statistics of all workers are in the result named
//! `global`; rate and connections of the options are those of each worker. Percentiles are the steps of an HdrHistogram with
//! cumulative counts; a time starts when the request is released.

use super::fields::{array, count, number, text};
use super::steps::from_cumulative;
use super::{ForeignError, ForeignResult};
use crate::clock::Clock;
use crate::figure::Figure;
use serde_json::Value;

const TOOL: &str = "nighthawk";
const TIMES: &str = "benchmark_http_client.request_to_response";
/// Name of the result of all workers.
const GLOBAL: &str = "global";
const US_IN_S: f64 = 1e6;

pub(super) fn is_one(document: &Value) -> bool {
    let results = array(document, &["results"]);
    !results.is_empty()
        && results.iter().all(|result| result.get("name").is_some() && result.get("statistics").is_some())
}

pub(super) fn read(document: &Value) -> Result<ForeignResult, ForeignError> {
    let results = array(document, &["results"]);
    let global = match results {
        [only] => only,
        _ => results.iter().find(|result| text(result, &["name"]).as_deref() == Some(GLOBAL)).ok_or_else(
            || ForeignError::new("nighthawk: it has results of several workers, and none named `global`"),
        )?,
    };
    let statistics = array(global, &["statistics"]);
    let times = statistics.iter().find(|one| text(one, &["id"]).as_deref() == Some(TIMES));
    let times =
        times.ok_or_else(|| ForeignError::new(format!("nighthawk: it has no statistic `{TIMES}`")))?;
    let mut result = ForeignResult::new(TOOL, Clock::ServiceTime);
    result.started_at = text(document, &["timestamp"]);
    result.target = text(document, &["options", "uri"]);
    // With `--concurrency auto` results alone tell how many there were; a single worker has none of its own.
    let named = results.iter().filter(|result| text(result, &["name"]).as_deref() != Some(GLOBAL)).count();
    let workers = count(document, &["options", "concurrency"]).unwrap_or(1).max(named as u64).max(1);
    let connections = count(document, &["options", "connections"]).map(|each| each.saturating_mul(workers));
    result.connections = connections.and_then(|count| usize::try_from(count).ok());
    // A closed loop under `--rps` ignores it.
    result.offered = number(document, &["options", "requests_per_second"]).map(|each| each * workers as f64);
    result.duration_s = duration(global, "execution_duration").map(|us| us / US_IN_S);
    result.answered = count(times, &["count"]);
    for (key, figure) in [("mean", Figure::Mean), ("max", Figure::Max)] {
        if times.get(key).is_some() {
            let time = duration(times, key);
            let time =
                time.ok_or_else(|| ForeignError::new(format!("nighthawk: its `{key}` is not a time")))?;
            result.times_us.insert(figure, time);
        }
    }
    let mut points = Vec::new();
    for percentile in array(times, &["percentiles"]) {
        let point = duration(percentile, "duration").zip(count(percentile, &["count"]));
        points.push(
            point.ok_or_else(|| ForeignError::new("nighthawk: a percentile lacks its duration or count"))?,
        );
    }
    if points.windows(2).any(|pair| pair[1].1 < pair[0].1) {
        return Err(ForeignError::new("nighthawk: the counts of its percentiles decrease"));
    }
    result.steps = from_cumulative(points);
    result.add_percentiles_of_steps();
    result.rate_completed = result
        .answered
        .zip(result.duration_s.filter(|duration| *duration > 0.0))
        .map(|(answered, duration)| answered as f64 / duration);
    result.limit_service_time("from the release of each request");
    let counter = |name: &str| {
        let counters = array(global, &["counters"]).iter();
        let found = counters.filter(|counter| text(counter, &["name"]).as_deref() == Some(name));
        found.filter_map(|counter| count(counter, &["value"])).fold(0, u64::saturating_add)
    };
    let unsent = counter("benchmark.pool_overflow");
    if unsent > 0 {
        result.limit(&format!(
            "{unsent} requests were not sent for lack of a connection (pool_overflow), and are in no figure"
        ));
    }
    Ok(result)
}

/// A duration such as `0.000059131s`, in microseconds.
fn duration(object: &Value, key: &str) -> Option<f64> {
    text(object, &[key])?.strip_suffix('s')?.parse::<f64>().ok().map(|seconds| seconds * US_IN_S)
}
