//! oha's JSON (`oha --output-format json`).
//!
//! Times are in seconds. Its histogram has eleven bars between the fastest and the slowest response, too few for an interval. The
//! file does not tell whether `--latency-correction` was given, which moves the start of a time to the wake-up for its request.

use super::fields::{at, needed, number};
use super::{ForeignError, ForeignResult};
use crate::clock::Clock;
use crate::figure::Figure;
use serde_json::Value;

const US_IN_S: f64 = 1e6;

const PERCENTILES: [(&str, Figure); 6] = [
    ("p50", Figure::P50),
    ("p75", Figure::P75),
    ("p90", Figure::P90),
    ("p95", Figure::P95),
    ("p99", Figure::P99),
    ("p99.9", Figure::P99_9),
];

pub(super) fn is_one(document: &Value) -> bool {
    at(document, &["latencyPercentiles"]).is_some() && at(document, &["summary"]).is_some()
}

pub(super) fn read(document: &Value) -> Result<ForeignResult, ForeignError> {
    let mut result = ForeignResult::new("oha", Clock::ServiceTime);
    let summary = at(document, &["summary"]).unwrap_or(&Value::Null);
    result.rate_completed = Some(needed(summary, &["requestsPerSec"], "oha")?);
    result.duration_s = number(summary, &["total"]);
    result.add_times(summary, &[("average", Figure::Mean), ("slowest", Figure::Max)], US_IN_S)?;
    result.add_times(&document["latencyPercentiles"], &PERCENTILES, US_IN_S)?;
    let counts = |name: &str, counts_as: fn(&str) -> bool| -> u64 {
        let counts = at(document, &[name]).and_then(Value::as_object).into_iter().flatten();
        let counted = counts.filter(|(kind, _)| counts_as(kind)).filter_map(|(_, count)| count.as_u64());
        counted.fold(0, u64::saturating_add)
    };
    result.answered = Some(counts("statusCodeDistribution", |_| true));
    result.errors = counts("statusCodeDistribution", |status| !status.starts_with(['2', '3']));
    result.failed = counts("errorDistribution", |_| true);
    result.limit_service_time("unless it ran with --latency-correction, which the file does not tell");
    result.limit("the file does not tell the offered rate: it is compared as a closed loop");
    result.limit("eleven bars are no histogram: no figure has an interval");
    if result.failed > 0 {
        let failed = result.failed;
        result.limit(&format!("its percentiles leave out {failed} requests without a response"));
    }
    Ok(result)
}
