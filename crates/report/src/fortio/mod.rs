//! A result in the format of fortio 1.66 (`fortio load -json`), for dashboards and scripts that read it.
//!
//! Three things differ from fortio, on purpose. `DurationHistogram` holds response times, from when a request
//! was due, and `Labels` says so; fortio counts from the send. Requests without a response count as the
//! slowest, with the minimum time that each waited. Percentiles come from the full histogram and not from its
//! buckets.
//!
//! `NumThreads` is the number of connections, since fortio has a thread per connection. Keys that only echo
//! fortio's own options are left out. Unknown values are empty, as in fortio: `HeaderSizes`, `Sockets`, and
//! `ErrorsDurationHistogram`, which is null if there were errors.

mod histogram;

use histogram::{HistogramData, sizes};
use results::LoadResult;
use results::units::format_duration;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Labels used if none are given.
pub const DEFAULT_LABELS: &str = "meshmeter: response times from when requests were due";
/// Key of requests that were not answered.
const SOCKET_ERROR: &str = "-1";
/// Key of responses in protocols without status codes.
const OK: &str = "OK";
/// Maximum length of an ID that fortio generates.
const MAX_ID_BYTES: usize = 96;

/// fortio's HTTPRunnerResults, or its TCP counterpart.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct RunnerResults<'a> {
    run_type: &'static str,
    labels: &'a str,
    start_time: &'a str,
    #[serde(rename = "RequestedQPS")]
    requested_qps: String,
    requested_duration: String,
    #[serde(rename = "ActualQPS")]
    actual_qps: f64,
    /// Duration in nanoseconds.
    actual_duration: u64,
    num_threads: usize,
    version: String,
    duration_histogram: HistogramData,
    errors_duration_histogram: Option<HistogramData>,
    exactly: u64,
    jitter: bool,
    uniform: bool,
    no_catch_up: bool,
    #[serde(rename = "RunID")]
    run_id: u64,
    #[serde(rename = "ID")]
    id: String,
    ret_codes: BTreeMap<String, u64>,
    #[serde(rename = "URL", skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    num_connections: usize,
    sizes: HistogramData,
    header_sizes: HistogramData,
    sockets: Vec<u64>,
    socket_count: u64,
    bytes_sent: u64,
    bytes_received: u64,
    connection_stats: HistogramData,
}

/// The result as JSON, ending with a line break. Without `labels`, [`DEFAULT_LABELS`] are used.
#[must_use]
pub fn json(result: &LoadResult, labels: Option<&str>) -> Vec<u8> {
    let labels = labels.unwrap_or(DEFAULT_LABELS);
    let url = result.urls.join(" ");
    let run_type = run_type(result);
    let is_http = run_type == "HTTP";
    let requests = &result.requests;
    let has_errors = requests.failed + requests.error_statuses() > 0;
    let results = RunnerResults {
        run_type,
        labels,
        start_time: &result.started_at,
        requested_qps: result.rate.offered.map_or("max".to_owned(), |rate| rate.to_string()),
        requested_duration: format_duration(Duration::from_secs_f64(result.duration_s.max(0.0))),
        actual_qps: result.rate.sent,
        actual_duration: (result.duration_s * 1e9) as u64,
        num_threads: result.connections,
        version: format!("meshmeter {}", result.version),
        duration_histogram: HistogramData::of_times(&result.response_time_us, result.censored_above_us),
        errors_duration_histogram: (!has_errors).then(HistogramData::default),
        exactly: 0,
        jitter: false,
        uniform: true,
        no_catch_up: false,
        run_id: 0,
        id: id(&result.started_at, labels),
        ret_codes: ret_codes(result, is_http),
        url: is_http.then(|| url.clone()),
        destination: (!is_http).then_some(url),
        num_connections: 1,
        sizes: sizes(&result.response_size_bytes, requests.failed),
        header_sizes: HistogramData::default(),
        sockets: Vec::new(),
        socket_count: result.connect_time_us.count,
        bytes_sent: result.bytes.sent,
        bytes_received: result.bytes.received,
        connection_stats: HistogramData::of_times(&result.connect_time_us, None),
    };
    let mut text = serde_json::to_vec_pretty(&results).expect("results have string keys and finite numbers");
    text.push(b'\n');
    text
}

/// Taken from the scheme of the first URL: all URLs have the same protocol.
fn run_type(result: &LoadResult) -> &'static str {
    let scheme = result.urls.first().and_then(|url| url.split_once("://")).map_or("", |(scheme, _)| scheme);
    match scheme {
        "tcp" | "tls" => "TCP",
        "grpc" | "grpcs" => "GRPC",
        _ => "HTTP",
    }
}

fn ret_codes(result: &LoadResult, is_http: bool) -> BTreeMap<String, u64> {
    let requests = &result.requests;
    let mut codes = if is_http { requests.status.clone() } else { requests.grpc_status.clone() };
    if codes.is_empty() && requests.completed > 0 {
        codes.insert(OK.to_owned(), requests.completed);
    }
    if requests.failed > 0 && is_http {
        codes.insert(SOCKET_ERROR.to_owned(), requests.failed);
    } else if requests.failed > 0 {
        codes.extend(requests.errors.clone());
    }
    codes
}

/// Builds the run's ID as fortio does: start time and labels, reduced to letters, digits and single
/// underscores.
fn id(started_at: &str, labels: &str) -> String {
    let time: jiff::Timestamp = started_at.parse().unwrap_or_default();
    let mut id = time.strftime("%Y-%m-%d-%H%M%S_").to_string();
    for letter in labels.chars() {
        if letter.is_ascii_alphanumeric() {
            id.push(letter);
        } else if !id.ends_with('_') {
            id.push('_');
        }
    }
    id.truncate(MAX_ID_BYTES);
    id.trim_end_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_made_of_start_time_and_labels() {
        let id = id("2026-11-20T12:35:40.974464971Z", "a  label, of: é !");
        assert_eq!(id, "2026-11-20-123540_a_label_of");
        assert_eq!(super::id("2026-11-20T12:35:40Z", &"x".repeat(200)).len(), MAX_ID_BYTES);
        assert_eq!(super::id("2026-11-20T12:35:40Z", ""), "2026-11-20-123540");
    }
}
