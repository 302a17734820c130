//! Merging loses nothing, and neither order nor grouping makes a difference.

use super::*;
use crate::unanswered_waits::UnansweredWaits;
use jiff::Timestamp;
use proptest::prelude::*;
use results::{
    Arrivals, Backlog, BacklogSlice, BurstArrivals, ClientStage, ConnectionSettings, ExpectedStatuses,
    Figure, Figures, IdleCloses, SeriesPoint, StreamEvents, UrlResult, Verdict,
};
use std::time::Duration;

/// The start of the earliest generator, in seconds since the epoch.
const EPOCH_S: i64 = 1_795_180_000;

fn histogram_of(values_us: &[u64]) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    for us in values_us {
        histogram.record(Duration::from_micros(*us));
    }
    histogram
}

/// A result with these response times, grouped by second. `offset_ms` shifts its start.
fn part(name: &str, offset_ms: i64, seconds: &[Vec<u64>]) -> MergeInput {
    let all: Vec<u64> = seconds.concat();
    let completed = all.len() as u64;
    let times = histogram_of(&all).summary();
    let start = Timestamp::from_millisecond(EPOCH_S * 1000 + offset_ms).expect("a time of our days");
    let point = |(index, values): (usize, &Vec<u64>)| {
        let times = histogram_of(values);
        SeriesPoint {
            t_s: index as f64,
            sent: values.len() as u64,
            completed: values.len() as u64,
            failed: 0,
            p50_us: Some(times.percentile_us(50.0)),
            p90_us: Some(times.percentile_us(90.0)),
            p99_us: Some(times.percentile_us(99.0)),
            p99_9_us: Some(times.percentile_us(99.9)),
            max_us: Some(times.max_us()),
        }
    };
    let rate = completed as f64 / seconds.len() as f64;
    let result = LoadResult {
        schema: LOAD_SCHEMA.to_owned(),
        version: "1.0.0".to_owned(),
        urls: vec!["http://10.0.0.1/".to_owned()],
        started_at: start.to_string(),
        duration_s: seconds.len() as f64,
        threads: 1,
        connections: 4,
        rate: Rates { offered: Some(rate), sent: rate, completed: rate },
        requests: RequestCounts {
            scheduled: completed,
            sent: completed,
            completed,
            status: BTreeMap::from([("200".to_owned(), completed)]),
            ..RequestCounts::default()
        },
        response_time_us: times.clone(),
        service_time_us: times,
        response_size_bytes: SizeSummary { count: completed, min: 10, mean: 10.0, stddev: 0.0, max: 10 },
        series: seconds.iter().enumerate().map(point).collect(),
        series_histograms: seconds.iter().map(|values| histogram_of(values).encode()).collect(),
        verdict: Verdict { valid: true, ..Verdict::default() },
        ..LoadResult::default()
    };
    MergeInput { name: name.to_owned(), result }
}

/// A result in the role of a part.
fn again(name: &str, result: LoadResult) -> MergeInput {
    MergeInput { name: name.to_owned(), result }
}

fn kinds(texts: &[String]) -> Vec<&str> {
    texts.iter().map(|text| text.split(':').next().unwrap_or_default()).collect()
}

fn seconds() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(1_u64..5_000_000, 0..30), 1..4)
}

#[test]
fn statuses_are_errors_by_what_each_part_expected() {
    let told = |expected: Option<&str>| {
        let offset_ms = expected.map_or(0, |text| text.len() as i64);
        let mut part = part(expected.unwrap_or("untold"), offset_ms, &[vec![100; 10]]);
        part.result.requests.status = BTreeMap::from([("302".to_owned(), 6), ("404".to_owned(), 4)]);
        if let Some(text) = expected {
            let expected = ExpectedStatuses::try_from(vec![text.to_owned()]).unwrap();
            part.result.requests.expect(&expected);
            part.result.expected_status = Some(expected);
        }
        part
    };
    let merged = |parts: [Option<&str>; 2]| merge(parts.map(told).to_vec()).unwrap();
    let found = merged([Some("2xx"), Some("3xx")]);
    assert_eq!(found.requests.error_statuses(), 10 + 4);
    assert_eq!(found.expected_status, None);
    let found = merged([Some("404"), None]);
    assert_eq!(
        found.requests.unexpected_status.unwrap(),
        BTreeMap::from([("302".to_owned(), 6), ("404".to_owned(), 4)])
    );
    assert_eq!(merge(vec![told(None)]).unwrap().requests.unexpected_status, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn merge_is_independent_of_order_and_grouping(
        one in seconds(), two in seconds(), three in seconds(), offsets in prop::array::uniform3(0_i64..3000),
    ) {
        let parts = [part("a", offsets[0], &one), part("b", offsets[1], &two), part("c", offsets[2], &three)];
        let [a, b, c] = parts;
        let whole = merge(vec![a.clone(), b.clone(), c.clone()]).unwrap();
        let left = merge(vec![again("ab", merge(vec![a.clone(), b.clone()]).unwrap()), c.clone()]).unwrap();
        let right = merge(vec![a.clone(), again("bc", merge(vec![c.clone(), b.clone()]).unwrap())]).unwrap();
        prop_assert_eq!(&whole, &left);
        prop_assert_eq!(&whole, &right);
        prop_assert_eq!(&whole, &merge(vec![c, a, b]).unwrap());
    }

    #[test]
    fn merged_percentiles_and_counts_cover_all_requests(
        one in seconds(), two in seconds(), offset in 0_i64..3000,
    ) {
        let merged = merge(vec![part("a", 0, &one), part("b", offset, &two)]).unwrap();
        let together = histogram_of(&[one.concat(), two.concat()].concat());
        prop_assert_eq!(&merged.response_time_us, &together.summary());
        let completed = together.count();
        prop_assert_eq!(merged.requests.completed, completed);
        prop_assert_eq!(merged.requests.status.get("200").copied().unwrap_or(0), completed);
        prop_assert_eq!(merged.response_size_bytes.count, completed);
        prop_assert_eq!(merged.series.iter().map(|point| point.completed).sum::<u64>(), completed);
        let mut seconds = LatencyHistogram::new();
        for text in &merged.series_histograms {
            seconds.merge(&LatencyHistogram::decode(text).unwrap());
        }
        prop_assert_eq!(seconds.summary(), together.summary());
    }
}

#[test]
fn concurrent_generators_are_valid_as_one() {
    let second = vec![vec![100; 10], vec![200; 10]];
    let merged = merge(vec![part("a", 0, &second), part("b", 1, &second)]).unwrap();
    assert!(merged.verdict.valid, "{:?}", merged.verdict);
    assert!(merged.verdict.notes.is_empty(), "{:?}", merged.verdict);
    assert_eq!((merged.rate.offered, merged.connections, merged.series.len()), (Some(20.0), 8, 2));
    assert_eq!(merged.series[1].completed, 20);
    let merged_from = merged.merged.unwrap();
    assert_eq!((merged.duration_s, merged_from.overlap_s, merged_from.parts.len()), (2.001, 1.999, 2));
}

#[test]
fn responses_are_timed_by_the_kernel_if_those_of_every_generator_are() {
    let timed = |by_kernel: [bool; 2]| {
        let parts = by_kernel.into_iter().zip(["a", "b"]).map(|(answers_timed_by_kernel, name)| {
            let mut part = part(name, 0, &[vec![100; 10 + name.len()]]);
            part.result.started_at = format!("2026-11-20T10:00:00.00{}Z", u8::from(name == "b"));
            part.result.generator.pacing =
                Some(PacingUsage { answers_timed_by_kernel, ..PacingUsage::default() });
            part
        });
        let merged = merge(parts.collect()).expect("they fit together");
        merged.generator.pacing.expect("both waited alike").answers_timed_by_kernel
    };
    assert_eq!([[true, true], [true, false], [false, true]].map(timed), [true, false, false]);
}

#[test]
fn arrivals_and_stages_of_clients_are_kept_if_alike() {
    let merged_of = |arrivals: [Arrivals; 2]| {
        let parts = arrivals.into_iter().zip(["a", "b"]).map(|(arrivals, name)| {
            let mut part = part(name, 0, &[vec![100; 10]]);
            part.result.started_at = format!("2026-11-20T10:00:00.00{}Z", u8::from(name == "b"));
            part.result.arrivals = Some(arrivals);
            part.result.client_stages = vec![ClientStage { from: 1, to: 9, duration_s: 2.5 }];
            part
        });
        merge(parts.collect()).expect("they fit together")
    };
    let alike = merged_of([Arrivals::Poisson, Arrivals::Poisson]);
    assert_eq!((alike.arrivals, alike.client_stages.len()), (Some(Arrivals::Poisson), 1));
    let bursts = BurstArrivals { factor: 5.0, share: 0.1, length_s: 1.0, count: 7 };
    let different = merged_of([Arrivals::Poisson, Arrivals::Bursts(bursts)]);
    assert_eq!(different.arrivals, None);
    let notes = different.verdict.notes.join("\n");
    assert!(notes.contains("different arrivals: Poisson process; bursts of 5 times"), "{notes}");
}

#[test]
fn ways_of_connecting_are_kept_if_alike_and_idle_closes_added() {
    let merged_of = |sources: [&str; 2]| {
        let parts = sources.into_iter().zip(["a", "b"]).map(|(source, name)| {
            let mut part = part(name, 0, &[vec![100; 10 + name.len()]]);
            part.result.started_at = format!("2026-11-20T10:00:00.00{}Z", u8::from(name == "b"));
            let source = Some(source.to_owned());
            let settings =
                ConnectionSettings { source, new_per_request: true, ..ConnectionSettings::default() };
            part.result.connection_settings = Some(settings);
            part.result.idle_closes = (name == "b").then_some(IdleCloses { connections: 3, requests: 2 });
            part
        });
        merge(parts.collect()).expect("they fit together")
    };
    let alike = merged_of(["10.0.0.0/24", "10.0.0.0/24"]);
    assert_eq!(
        alike.connection_settings.and_then(|settings| settings.source).as_deref(),
        Some("10.0.0.0/24")
    );
    assert_eq!(alike.idle_closes, Some(IdleCloses { connections: 3, requests: 2 }));
    let different = merged_of(["10.0.0.1", "10.0.0.2"]);
    assert_eq!(different.connection_settings, None);
    let note = "settings: the generators had different connections: from 10.0.0.1, a new one per request; from \
                10.0.0.2, a new one per request";
    assert!(different.verdict.notes.iter().any(|found| found == note), "{:?}", different.verdict.notes);
}

#[test]
fn eighteen_generators_are_merged_and_summarised() {
    let values: Vec<u64> = (0..18_000).map(|number| 100 + (number * 7919) % 9973).collect();
    let share = |index: usize| values.iter().skip(index).step_by(18).copied().collect::<Vec<u64>>();
    let parts: Vec<MergeInput> = (0..18)
        .map(|index| {
            let mut part = part(&format!("generator-{}", index + 1), 0, &[share(index)]);
            part.result.start_delay_us = Some(100.0 + 25.0 * index as f64);
            part.result.generator.cpu_user_s = 0.25;
            part
        })
        .collect();
    let merged = merge_generators(parts).unwrap().unwrap();
    assert_eq!(merged.response_time_us, histogram_of(&values).summary());
    assert_eq!((merged.requests.scheduled, merged.rate.offered), (18_000, Some(18_000.0)));
    assert!(merged.verdict.valid && merged.verdict.notes.is_empty(), "{:?}", merged.verdict);
    let parts = &merged.merged.as_ref().unwrap().parts;
    assert!(parts.iter().all(|part| part.result.is_none() && part.requests == 1000));
    let of = |name: &str| parts.iter().find(|part| part.name == name).unwrap();
    assert_eq!(
        (of("generator-1").start_offset_us, of("generator-18").start_offset_us),
        (Some(0.0), Some(425.0))
    );
    assert_eq!(of("generator-3").cpu_cores, 0.25);
    assert_eq!(of("generator-3").p99_us, histogram_of(&share(2)).summary().p99);
    // Beside other drivers it counts as one.
    let other = MergeInput { name: "other".into(), ..part("b", 0, &[vec![5; 10]]) };
    let all =
        merge_drivers(vec![MergeInput { name: "shared".into(), result: merged }, other]).unwrap().unwrap();
    assert_eq!(all.requests.sent, 18_010);
}

#[test]
fn equal_reasons_are_folded_and_late_generators_named() {
    let lag = |name: &str, offset_us: f64, reason: Option<&str>| {
        let mut part = part(name, 0, &[vec![offset_us as u64 + 1; 10]]);
        part.result.start_delay_us = Some(offset_us);
        if let Some(reason) = reason {
            part.result.verdict.spoil(reason, results::Figures::times());
            part.result.verdict.notes.push("clock: it was set".to_owned());
        }
        part
    };
    let parts = vec![
        lag("g-1", 0.0, Some("schedule-lag: by 3 ms")),
        lag("g-2", 1.0, None),
        lag("g-3", 2.0, Some("schedule-lag: by 9 ms")),
        lag("g-4", 30_000.0, Some("schedule-lag: by 4 ms")),
    ];
    let verdict = merge_generators(parts).unwrap().unwrap().verdict;
    assert_eq!(verdict.reasons, ["schedule-lag: g-1: by 3 ms (and 2 other generators)"]);
    assert_eq!((verdict.spoiled.len(), verdict.valid), (1, false));
    assert_eq!(kinds(&verdict.notes), ["clock", "generator-late"]);
    assert!(verdict.notes[1].contains("g-4 began 30 ms after the first"), "{:?}", verdict.notes);
}

#[test]
fn seconds_are_aligned_by_absolute_time() {
    let merged = merge(vec![part("a", 0, &[vec![1], vec![2; 2]]), part("b", 1100, &[vec![3; 4]])]).unwrap();
    let completed: Vec<_> = merged.series.iter().map(|point| (point.t_s, point.completed)).collect();
    assert_eq!(completed, [(0.0, 1), (1.0, 6)]);
    assert_eq!((merged.series[1].p50_us, merged.series[1].max_us), (Some(3.0), Some(3.0)));
}

#[test]
fn partial_overlap_is_reported_with_its_length() {
    let seconds = vec![vec![100; 10]; 10];
    let apart =
        |offset_ms| merge(vec![part("a", 0, &seconds), part("b", offset_ms, &seconds)]).unwrap().verdict;
    let note = apart(300);
    assert_eq!((kinds(&note.notes), note.valid), (vec!["overlap"], true));
    let reason = apart(2000);
    assert_eq!((kinds(&reason.reasons), reason.valid), (vec!["overlap"], false));
    assert!(reason.reasons[0].contains("8.0 s of 12.0 s"), "{:?}", reason.reasons);
    assert!(apart(60_000).reasons[0].contains("at no time in 70.0 s"));
}

#[test]
fn invalid_part_spoils_merge_and_differences_are_noted() {
    let seconds = vec![vec![100; 10]];
    let mut other = part("b.json", 0, &seconds);
    other.result.verdict.spoil("saturated: 5/s of 10/s", Figures::all());
    other.result.verdict.saturated = true;
    other.result.urls = vec!["http://10.0.0.2/".to_owned()];
    other.result.version = String::new();
    other.result.rate.offered = None;
    other.result.series_histograms.clear();
    let merged = merge(vec![part("a.json", 0, &seconds), other]).unwrap();
    assert_eq!(merged.verdict.reasons, ["saturated: b.json: 5/s of 10/s"]);
    assert!(merged.verdict.saturated && !merged.verdict.valid);
    assert_eq!(kinds(&merged.verdict.notes), ["settings", "settings", "settings", "series"]);
    assert_eq!(merged.rate.offered, None);
    assert_eq!(merged.urls.len(), 2);
    assert!(merged.series_histograms.is_empty());
}

#[test]
fn merge_errors_name_the_result() {
    let good = || part("good", 0, &[vec![100; 3]]);
    let broken = |change: fn(&mut LoadResult)| {
        let mut bad = part("bad", 0, &[vec![200; 3]]);
        change(&mut bad.result);
        merge(vec![good(), bad]).unwrap_err().to_string()
    };
    for (error, expected) in [
        (broken(|result| result.schema = "meshmeter.load/9".into()), "bad: its schema is `meshmeter.load/9`"),
        (broken(|result| result.started_at = "yesterday".into()), "bad: started_at is `yesterday`"),
        (broken(|result| result.duration_s = -1.0), "bad: duration_s is `-1`"),
        (broken(|result| result.duration_s = 1e300), "not a length of a measurement"),
        (broken(|result| result.response_time_us.histogram = "x".into()), "histogram of response_time_us"),
        (
            broken(|result| result.service_time_us.count = 4),
            "service_time_us has 3 values, and 4 are counted",
        ),
        (broken(|result| result.series_histograms[0] = String::new()), "series_histograms[0]"),
    ] {
        assert!(error.contains(expected), "{error}");
    }
    let twice = merge(vec![good(), MergeInput { name: "other".into(), ..good() }]).unwrap_err();
    assert_eq!(twice.to_string(), "good and other are the same measurement: it would count twice");
    // A part that is already in a merged result counts as well.
    let merged = merge(vec![good(), part("b", 0, &[vec![1]])]).unwrap();
    assert!(matches!(merge(vec![again("ab", merged), good()]), Err(MergeError::Twice { .. })));
    assert!(matches!(merge(Vec::new()), Err(MergeError::Nothing)));
}

#[test]
fn maximum_counts_do_not_overflow() {
    let mut parts = [part("a", 0, &[vec![1]]), part("b", 1, &[vec![2]])];
    for part in &mut parts {
        part.result.requests.sent = u64::MAX;
        part.result.threads = usize::MAX;
        part.result.clients = Some(usize::MAX);
        part.result.series[0].t_s = f64::MAX;
    }
    let merged = merge(parts.to_vec()).unwrap();
    assert_eq!((merged.requests.sent, merged.clients), (u64::MAX, Some(usize::MAX)));
}

#[test]
fn requests_without_response_rank_above_responses_of_all_generators() {
    let seconds = vec![vec![100; 990]];
    let mut failing = part("b.json", 0, &[vec![200; 990]]);
    failing.result.response_time_us = histogram_of(&[200; 990]).summary_with(30);
    (failing.result.series[0].failed, failing.result.censored_above_us) = (30, Some(500_000.0));
    failing.result.urls = vec!["http://10.0.0.2/".to_owned()];
    let merged = merge(vec![part("a.json", 0, &seconds), failing]).unwrap();
    let times = &merged.response_time_us;
    assert_eq!((times.count, times.censored, merged.censored_above_us), (1980, 30, Some(500_000.0)));
    assert_eq!((times.p95, times.p99, times.max), (Some(200.0), None, None));
    assert_eq!((merged.series[0].p90_us, merged.series[0].p99_us), (Some(200.0), None));
}

#[test]
fn early_failures_of_one_generator_do_not_hide_the_timeouts_of_another() {
    let failing = |name: &str, waits: &[(f64, u64)]| {
        let mut part = part(name, 0, &[vec![200; 990]]);
        let failed = waits.iter().map(|(_, count)| count).sum();
        part.result.response_time_us = histogram_of(&[200; 990]).summary_with(failed);
        (part.result.requests.failed, part.result.unanswered_waits_us) = (failed, waits.to_vec());
        part.result.censored_above_us = waits.first().map(|(wait_us, _)| *wait_us);
        part.result.urls = vec![format!("http://{name}/")];
        part
    };
    let merged = merge(vec![failing("a", &[(2000.0, 5)]), failing("b", &[(500_000.0, 30)])]).unwrap();
    // p99 is the 21st from the top of 2015.
    assert_eq!((merged.response_time_us.p99, merged.censored_above_us), (None, Some(500_000.0)));
    assert_eq!(merged.unanswered_waits_us, [(2000.0, 5), (500_000.0, 30)]);
}

#[test]
fn percentiles_of_a_url_among_requests_without_response_are_above_the_waits_of_all_generators() {
    // The median of one generator is above a second. Of both together p95 is the first percentile without a response, and it falls
    // among the requests that failed soon.
    let measured = |name: &str, answered: usize, waits: &[(f64, u64)]| {
        let mut part = part(name, 0, &[vec![100; answered]]);
        let failed = waits.iter().map(|(_, count)| count).sum();
        let mut record = UrlResult { url: "http://10.0.0.1/".to_owned(), failed, ..UrlResult::default() };
        record.response_time_us = histogram_of(&vec![100; answered]).summary_with(failed);
        record.unanswered_waits_us = waits.to_vec();
        let all = UnansweredWaits::from_entries(waits);
        record.censored_above_us = all.above_us(answered as u64, 100.0, 0);
        part.result.per_url = vec![record];
        part
    };
    let failing = measured("a", 400, &[(10_000.0, 60), (1_000_000.0, 540)]);
    assert_eq!(failing.result.per_url[0].censored_above_us, Some(1_000_000.0));
    let merged = merge(vec![failing, measured("b", 10_000, &[])]).unwrap();
    let [of_url] = &merged.per_url[..] else { panic!("{:?}", merged.per_url) };
    assert_eq!((of_url.response_time_us.p90, of_url.response_time_us.p95), (Some(100.0), None));
    assert_eq!(of_url.censored_above_us, Some(10_000.0));
    assert_eq!(of_url.unanswered_waits_us, [(10_000.0, 60), (1_000_000.0, 540)]);
}

#[test]
fn streams_of_all_generators_are_merged_and_requests_without_a_first_event_rank_above_them() {
    let streaming = |name: &str, first_us: &[u64], censored: u64| {
        let mut part = part(name, 0, &[vec![100; first_us.len()]]);
        part.result.first_byte_us = Some(histogram_of(first_us).summary());
        part.result.first_event_us = Some(histogram_of(first_us).summary_with(censored));
        part.result.event_gap_us = Some(histogram_of(&[10, 20]).summary());
        let per_response = SizeSummary { count: 2, min: 3, mean: 4.0, stddev: 1.0, max: 5 };
        let (received, read_together, read_together_within_us) = (8, 1, first_us[0] as f64);
        part.result.events =
            Some(StreamEvents { received, per_response, empty: 1, read_together, read_together_within_us });
        part
    };
    // No stream of the last one began: all its requests have failed.
    let mut failed = part("c", 0, &[vec![]]);
    failed.result.response_time_us = histogram_of(&[]).summary_with(3);
    let merged = merge(vec![streaming("a", &[100, 200], 1), streaming("b", &[300, 400], 0), failed]).unwrap();
    let first_event = merged.first_event_us.expect("streams");
    assert_eq!((first_event.count, first_event.censored, first_event.p50), (4, 4, Some(400.0)));
    assert_eq!((first_event.p75, merged.first_byte_us.map(|times| times.censored)), (None, Some(3)));
    assert_eq!(merged.event_gap_us.map(|gaps| (gaps.count, gaps.censored)), Some((4, 0)));
    let events = merged.events.expect("streams");
    assert_eq!((events.received, events.read_together, events.read_together_within_us), (16, 2, 300.0));
    assert_eq!(events.empty, 2);
    let SizeSummary { count, min, mean, max, .. } = events.per_response;
    assert_eq!((count, min, mean, max), (4, 3, 4.0, 5));
    let without = merge(vec![part("a", 0, &[vec![100]])]).unwrap();
    assert!(without.first_event_us.is_none() && without.events.is_none());
}

#[test]
fn errors_of_warm_ups_and_responses_over_the_edges_are_added() {
    let counted = |name: &str, offset_ms| {
        let mut part = part(name, offset_ms, &[vec![100; 10]]);
        part.result.warmup.errors = BTreeMap::from([("timeout".to_owned(), 3)]);
        part.result.warmup.completed_in_window = 2;
        part.result.requests.completed_after_window = 4;
        part
    };
    let merged = merge(vec![counted("a", 0), counted("b", 10)]).unwrap();
    assert_eq!(merged.warmup.errors, BTreeMap::from([("timeout".to_owned(), 6)]));
    assert_eq!((merged.warmup.completed_in_window, merged.requests.completed_after_window), (4, 8));
    assert_eq!((merged.errors_of_run("timeout"), merged.requests.errors.len()), (6, 0));
}

#[test]
fn backlog_that_is_small_for_each_generator_is_saturation_of_their_target() {
    // Of ten requests per slice and generator, one is answered too few in every third slice.
    let behind = |number: u64| {
        let mut part = part(&number.to_string(), number as i64, &[vec![100; 160]]);
        let slice = |index: u64| BacklogSlice {
            offered: 10.0,
            due: 10,
            root_waits: 10.0 * (1e6 * index as f64).sqrt(),
            ended: 10 - u64::from((index + number).is_multiple_of(3)),
        };
        part.result.backlog = Some(Backlog { under_way_at_start: 1, slices: (0..16).map(slice).collect() });
        part
    };
    let parts: Vec<MergeInput> = (0..6).map(behind).collect();
    let is_saturated = |parts: &[MergeInput]| {
        let merged = merge(parts.to_vec()).unwrap();
        assert_eq!(merged.verdict.saturated, !merged.verdict.is_usable(Figure::P50), "{:?}", merged.verdict);
        merged.verdict.saturated
    };
    assert!(!is_saturated(&parts[..1]) && !is_saturated(&parts[..2]));
    assert!(is_saturated(&parts));
    let merged = merge(parts.clone()).unwrap();
    let text = "saturated: the unanswered requests of all generators together grew throughout the window, from 14 to 38, and \
                their typical times from 3.4 to 13.5 ms";
    assert_eq!(merged.verdict.reasons, [text]);
    assert_eq!(merge(vec![again("all", merged.clone())]).unwrap(), merged);
    // Generators of several targets, or one that does not know its backlog.
    let mut of_two = parts.clone();
    of_two[0].result.urls = vec!["http://10.0.0.2/".to_owned()];
    let mut unknown = parts;
    unknown[0].result.backlog = None;
    assert!(!is_saturated(&of_two) && !is_saturated(&unknown));
}

#[test]
fn a_stall_that_two_generators_meet_is_one_episode() {
    // Both stall for 100 ms two seconds after the first began; the second generator began half a second
    // later.
    let with_slowest = |name: &str, after_ms: i64| {
        let mut part =
            part(name, after_ms, &[vec![1_000; 990], [vec![1_000; 985], vec![50_000; 25]].concat()]);
        let mut slowest = crate::episodes::Slowest::new();
        (0..1975).for_each(|index| slowest.answered(index, 1_000_000));
        (0..25).for_each(|index| {
            slowest.answered((2_000 - after_ms as u64 + index * 2) * 1_000_000, 50_000_000);
        });
        part.result.slowest = Some(slowest.to_requests(0));
        part
    };
    let (one, other) = (with_slowest("a", 0), with_slowest("b", 500));
    let both = merge(vec![one.clone(), other.clone()]).unwrap();
    assert_eq!(both.episodes.get("p99"), Some(&1), "{:?}", both.episodes);
    let again = merge(vec![again("both", both.clone())]).unwrap();
    assert_eq!(again.episodes, both.episodes);
    let mut old = other;
    old.result.slowest = None;
    assert!(merge(vec![one, old]).unwrap().episodes.is_empty(), "one of them does not say");
}
