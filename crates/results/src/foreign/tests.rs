//! Each dialect on samples of the fuzz corpus: values by hand, and what damaged files say.

use super::*;

macro_rules! sample {
    ($name:literal) => {
        read(include_bytes!(concat!("../../../../fuzz/corpus/foreign_result/", $name)))
    };
}

fn times(result: &ForeignResult) -> Vec<(&'static str, f64)> {
    result.times_us.iter().map(|(figure, value)| (figure.name(), (value * 10.0).round() / 10.0)).collect()
}

fn says(result: &ForeignResult, text: &str) -> bool {
    result.limits.iter().any(|limit| limit.contains(text))
}

#[test]
fn fortio_has_its_percentiles_and_buckets() {
    let result = sample!("fortio").unwrap();
    assert_eq!((result.tool, result.offered, result.answered), ("fortio", Some(1000.0), Some(10_000)));
    let expected = [
        ("mean", 650.0),
        ("p50", 640.0),
        ("p75", 860.0),
        ("p90", 1000.0),
        ("p99", 1950.0),
        ("p99.9", 3000.0),
        ("max", 11_800.0),
    ];
    assert_eq!(times(&result), expected);
    assert_eq!(result.steps.len(), 4);
    assert_eq!(result.clock, Clock::ServiceTime);
    assert!(
        says(&result, "coordinated omission") && says(&result, "2 failed requests"),
        "{:?}",
        result.limits
    );
}

#[test]
fn k6_has_milliseconds_and_lines_have_every_request() {
    let summary = sample!("k6-summary-export").unwrap();
    let expected = [("mean", 1440.0), ("p50", 1370.0), ("p90", 2420.0), ("p95", 2660.0), ("max", 12_930.0)];
    assert_eq!(times(&summary), expected);
    assert_eq!((summary.rate_completed, summary.offered, summary.connections), (Some(599.9), None, Some(10)));
    assert!(summary.steps.is_empty() && says(&summary, "no figure has an interval"));
    let data = sample!("k6-handle-summary").unwrap();
    assert_eq!(data.times_us[&Figure::P99], 132_000.0);
    assert_eq!(data.duration_s, Some(30.018_406_8));
    let lines = sample!("k6-lines").unwrap();
    assert_eq!((lines.answered, lines.failed), (Some(199), 1));
    assert!(!lines.times_us.contains_key(&Figure::Max), "the slowest one had no response");
    assert!((300.0..1000.0).contains(&lines.times_us[&Figure::P50]), "{lines:?}");
    assert_eq!(lines.started_at.as_deref(), Some("2026-11-20T10:00:00.000000000Z"));
}

#[test]
fn wrk_and_wrk2_differ_in_when_a_time_starts() {
    let wrk = sample!("wrk").unwrap();
    assert_eq!((wrk.tool, wrk.clock, wrk.answered), ("wrk", Clock::ServiceTime, Some(22_464_657)));
    let expected =
        [("mean", 635.9), ("p50", 250.0), ("p75", 491.0), ("p90", 700.0), ("p99", 5800.0), ("max", 12_920.0)];
    assert_eq!(times(&wrk), expected);
    assert_eq!((wrk.rate_completed, wrk.failed, wrk.connections), (Some(748_868.53), 3, Some(10)));
    assert_eq!(times(&sample!("wrk-without-latency").unwrap()), [("mean", 635.9), ("max", 12_920.0)]);
    let wrk2 = sample!("wrk2").unwrap();
    assert_eq!((wrk2.tool, wrk2.clock), ("wrk2", Clock::ResponseTime));
    assert_eq!(wrk2.times_us[&Figure::P99], 3020.0);
    assert_eq!(wrk2.steps.iter().map(|step| step.count).sum::<u64>(), 99_363);
    assert_eq!(wrk2.duration_s, Some(60.0));
    let text = include_str!("../../../../fuzz/corpus/foreign_result/wrk2");
    let other_version = read(text.replace("Stdev     Max", "Stdev     99%").as_bytes()).unwrap();
    assert!(!other_version.times_us.contains_key(&Figure::Max), "the column is another figure");
    let with_uncorrected = sample!("wrk2-with-uncorrected").unwrap();
    assert_eq!(with_uncorrected, wrk2, "times from the send are not read");
}

#[test]
fn oha_vegeta_and_nighthawk_have_their_units() {
    let oha = sample!("oha").unwrap();
    assert_eq!((oha.times_us[&Figure::P99], oha.answered, oha.failed), (1200.0, Some(20_107), 20));
    let report = sample!("vegeta-report").unwrap();
    assert_eq!(report.times_us[&Figure::P50].round(), 2854.0);
    assert_eq!((report.offered, report.rate_completed), (Some(1010.1), Some(1000.5)));
    let lines = sample!("vegeta-lines").unwrap();
    assert_eq!((lines.answered, lines.failed), (Some(119), 1));
    assert!(lines.times_us[&Figure::P50] > 2000.0);
    let nighthawk = sample!("nighthawk").unwrap();
    assert_eq!(nighthawk.times_us[&Figure::P50].round(), 59.0);
    assert_eq!(nighthawk.times_us[&Figure::P99].round(), 90.0, "the step that has the rank");
    assert!(says(&nighthawk, "2 requests were not sent"), "{:?}", nighthawk.limits);
}

#[test]
fn lines_of_requests_name_their_target() {
    assert_eq!(sample!("vegeta-lines").unwrap().target.as_deref(), Some("http://10.1.0.7/"));
    let line = |tags: &str| {
        format!(
            r#"{{"metric":"http_req_duration","type":"Point","data":{{"time":"","value":1.0,"tags":{{{tags}}}}}}}"#
        )
    };
    let target = |tags: &str| read(line(tags).as_bytes()).unwrap().target;
    assert_eq!(target(r#""url":"http://u:p@a/x","name":"x""#).as_deref(), Some("http://a/x"));
    assert_eq!(target(r#""name":"http://a/y""#).as_deref(), Some("http://a/y"));
    assert_eq!(target(""), None);
}

#[test]
fn nighthawk_has_rate_and_connections_of_each_worker() {
    let text = include_str!("../../../../fuzz/corpus/foreign_result/nighthawk");
    let of = |text: &str| {
        let result = read(text.as_bytes()).unwrap();
        (result.offered, result.connections)
    };
    assert_eq!(of(text), (Some(300.0), Some(100)));
    let workers = text.replace(r#""worker_0","#, r#""worker_0","statistics":[]},{"name":"worker_1","#);
    assert_eq!(of(&workers), (Some(600.0), Some(200)));
    let named = text.replace(r#""duration": "5s","#, r#""duration": "5s", "concurrency": "4","#);
    assert_eq!(of(&named), (Some(1200.0), Some(400)));
    let by_machine = text.replace(r#""duration": "5s","#, r#""duration": "5s", "concurrency": "auto","#);
    assert_eq!(of(&by_machine), (Some(300.0), Some(100)));
}

#[test]
fn own_log_leaves_requests_without_a_response_out_of_its_mean() {
    let mut histogram = LatencyHistogram::new();
    (0..200).for_each(|_| histogram.record(std::time::Duration::from_millis(1)));
    let interval = |histogram: &LatencyHistogram| {
        let encoded = crate::NanosecondEncoder::new().encode(histogram);
        format!("0.000,1.000,{:.3},{}\n", encoded.max_ns as f64 / 1e6, encoded.histogram)
    };
    let told = "#[Without a response: 5 requests, recorded at the greatest value of the histogram]\n";
    let log = format!("#[meshmeter 0.1.0: response time]\n{told}{}", interval(&histogram.with_censored(5)));
    let result = read(log.as_bytes()).unwrap();
    assert_eq!((result.answered, result.failed, result.rate_completed), (Some(200), 5, Some(200.0)));
    assert!(!result.times_us.contains_key(&Figure::Mean) && !result.times_us.contains_key(&Figure::P99));
    assert!((result.times_us[&Figure::P50] / 1000.0 - 1.0).abs() < 0.01, "{:?}", result.times_us);
    assert!(says(&result, "it has no mean"), "{:?}", result.limits);
    let more = log.replace(": 5 requests", ": 500 requests");
    assert!(read(more.as_bytes()).unwrap_err().to_string().contains("has 205 in all"));
}

#[test]
fn damaged_percentiles_are_errors_or_notes() {
    let fortio = include_str!("../../../../fuzz/corpus/foreign_result/fortio");
    let oha = include_str!("../../../../fuzz/corpus/foreign_result/oha");
    let wrk = include_str!("../../../../fuzz/corpus/foreign_result/wrk");
    let nighthawk = include_str!("../../../../fuzz/corpus/foreign_result/nighthawk");
    let report = include_str!("../../../../fuzz/corpus/foreign_result/vegeta-report");
    let value = r#""p99": 0.0012"#;
    for (text, from, to, expected) in [
        (fortio, "\"Value\"", "\"value\"", "a percentile lacks its Value"),
        (oha, value, r#""p99": "1.2 ms""#, "its `p99` is not a number"),
        (oha, value, r#""p99": -0.0012"#, "which is not a latency"),
        (wrk, "5.80ms", "5.80", "line 10 has no time"),
        (nighthawk, r#""mean": "0.000060090s""#, r#""mean": 60"#, "its `mean` is not a time"),
        (report, "\"99th\": ", "\"99th\": -", "which is not a latency"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = read(text.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
    }
    let without = read(oha.replace(value, r#""p99": null"#).as_bytes()).unwrap();
    assert!(says(&without, "`p99` has no value") && !without.times_us.contains_key(&Figure::P99));
    let zero = read(oha.replace(r#""p50": 0.00045"#, r#""p50": 0"#).as_bytes()).unwrap();
    assert!(says(&zero, "p50 is 0"), "{:?}", zero.limits);
}

#[test]
fn hdr_log_sums_intervals_without_a_tag() {
    let log = sample!("hdr-log").unwrap();
    assert_eq!((log.answered, log.duration_s), (Some(2400), Some(2.0)));
    assert!((350.0..600.0).contains(&log.times_us[&Figure::P50]), "{:?}", log.times_us);
    assert_eq!(log.started_at.as_deref(), Some("1763632800.000"));
}

#[test]
fn damaged_files_say_what_is_wrong() {
    let error = |found: Result<ForeignResult, ForeignError>| found.unwrap_err().to_string();
    let said = [
        (error(sample!("fortio-bucket-ends-before-it-starts")), "its histogram is not ascending"),
        (error(sample!("fortio-p99-of-1e300-s")), "which is not a latency"),
        (error(sample!("fortio-count-of-all-bits")), "more requests than any load"),
        (error(sample!("fortio-cut-short")), "it is not JSON"),
        (error(sample!("k6-summary-without-requests")), "no metric `http_req_duration`"),
        (error(sample!("k6-lines-cut-short")), "line 401 is not JSON"),
        (error(sample!("k6-lines-with-a-negative-time")), "line 2 has no time"),
        (error(sample!("wrk-cut-short")), "it was cut short"),
        (error(sample!("wrk2-spectrum-of-words")), "is not a line of its spectrum"),
        (error(sample!("oha-without-a-response")), "no latency of any response"),
        (error(sample!("oha-p99-below-p50")), "p99 is below p95"),
        (error(sample!("vegeta-latency-of-words")), "line 2 has no latency"),
        (error(sample!("nighthawk-counts-decrease")), "decrease"),
        (error(sample!("nighthawk-without-global")), "none named `global`"),
        (error(sample!("hdr-log-of-tags-alone")), "every interval has a tag: read, write"),
        (error(sample!("hdr-log-of-another-unit")), "the unit of its values is unknown"),
        (error(sample!("hdr-log-cut-short")), "has no histogram"),
        (error(sample!("hdr-log-without-intervals")), "it has no interval"),
        (error(sample!("empty")), "not a result of a known load generator"),
        (error(sample!("not-text")), "it is not text: byte 22"),
        (error(sample!("deep-json")), "it is not JSON"),
        (error(sample!("unknown-json")), "not a result of a known load generator"),
        (error(sample!("an-array-of-numbers")), "not a result of a known load generator"),
    ];
    for (message, expected) in said {
        assert!(message.contains(expected), "{message:?} lacks {expected:?}");
    }
}
