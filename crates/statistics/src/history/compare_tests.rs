//! Comparisons of finished runs, each with values by hand.

use super::*;
use results::{Factors, LoadPoint, Metric, Mode};
use std::collections::BTreeMap;

fn cell(rate: f64) -> OwnedCellKey {
    let load = LoadPoint { protocol: "http/1.1".to_owned(), rate: Some(rate), ..LoadPoint::of_fleet() };
    OwnedCellKey { mode: Mode::Sidecar, factors: Factors::new(), load }
}

fn estimate(value: f64) -> Estimate {
    Estimate { estimate: value, low: Some(value * 0.99), high: Some(value * 1.01), n: 5, alone: None }
}

fn recorded(number: usize, figures: &[(Metric, f64, f64)]) -> Recorded {
    let figure = |(key, rate, value): &(Metric, f64, f64)| HistoryFigure {
        key: *key,
        cell: cell(*rate),
        estimate: estimate(*value),
    };
    let run = HistoryRun {
        run: format!("runs/{number}"),
        source: "run".to_owned(),
        name: "study".to_owned(),
        seed: Some(number as u64),
        environment: BTreeMap::from([("kernel".to_owned(), "6.1".to_owned())]),
        programs: BTreeMap::from([("envoy".to_owned(), "1.35".to_owned())]),
        figures: figures.iter().map(figure).collect(),
        ..HistoryRun::default()
    };
    Recorded { run, failures: Vec::new(), missing: Vec::new() }
}

const P50: Metric = Metric::ResponseTimeP50Us;
const P99: Metric = Metric::ResponseTimeP99Us;

#[test]
fn two_runs_have_intervals_of_their_own_and_no_verdict() {
    let (base, head) = (recorded(1, &[(P50, 500.0, 100.0)]), recorded(2, &[(P50, 500.0, 150.0)]));
    let compared = compare_runs(&base, &[head], &Request::default());
    assert_eq!(compared.verdict, ComparisonVerdict::Inconclusive);
    let figure = &compared.figures[0];
    assert_eq!(figure.reason, Some(InconclusiveReason::RunVariationUnknown));
    let ratio = figure.ratio.unwrap();
    assert!((ratio.low.unwrap() / 1.5 - 0.986).abs() < 0.001 && ratio.high.unwrap() > 1.5, "{ratio:?}");
}

#[test]
fn what_cannot_be_compared_is_named_and_the_rest_is_compared() {
    let base = recorded(1, &[(P50, 500.0, 100.0), (P50, 1000.0, 120.0), (P99, 500.0, 300.0)]);
    let head = recorded(2, &[(P50, 500.0, 100.0), (P50, 2000.0, 150.0)]);
    let compared = compare_runs(&base, &[head], &Request::default());
    assert_eq!(compared.figures.len(), 1);
    let finished = compared.finished.unwrap();
    assert_eq!(
        finished.not_compared,
        ["sidecar at 1000 requests/s is only in runs/1", "sidecar at 2000 requests/s is only in runs/2"]
    );
    assert_eq!(compared.failures, ["response_time_p99_us of sidecar at 500 requests/s is only in runs/1"]);
    assert_eq!(compared.verdict, ComparisonVerdict::Failed, "missing data are no success");
}

#[test]
fn another_environment_is_compared_on_request_alone() {
    let base = recorded(1, &[(P50, 500.0, 100.0)]);
    let mut head = recorded(2, &[(P50, 500.0, 100.0)]);
    head.run.environment.insert("kernel".to_owned(), "6.8".to_owned());
    head.run.programs.insert("envoy".to_owned(), "1.36".to_owned());
    let refused = compare_runs(&base, std::slice::from_ref(&head), &Request::default());
    assert_eq!(refused.environment_changes, ["kernel: 6.1 → 6.8", "envoy: 1.35 → 1.36"]);
    assert_eq!((refused.verdict, refused.figures.len()), (ComparisonVerdict::Failed, 0));
    assert!(refused.failures[0].contains("--across-environments"), "{:?}", refused.failures);
    let request = Request { across_environments: true, ..Request::default() };
    let compared = compare_runs(&base, &[head], &request);
    assert_eq!((compared.verdict, compared.figures.len()), (ComparisonVerdict::Inconclusive, 1));
    assert_eq!(compared.environment_changes.len(), 2, "still said");
}

#[test]
fn interrupted_runs_are_failures() {
    let base = recorded(1, &[(P50, 500.0, 100.0)]);
    let mut head = recorded(2, &[(P50, 500.0, 100.0)]);
    head.failures.push("runs/2: the run was cut short".to_owned());
    assert_eq!(compare_runs(&base, &[head], &Request::default()).verdict, ComparisonVerdict::Failed);
}

#[test]
fn run_and_load_are_refused_alike_in_both_orders() {
    let run = recorded(1, &[(P50, 500.0, 100.0), (P50, 1000.0, 120.0)]);
    let mut load = recorded(2, &[(P50, 500.0, 90.0)]);
    load.run.source = "load".to_owned();
    for across_environments in [false, true] {
        let request = Request { across_environments, ..Request::default() };
        let compared = |base: &Recorded, head: &Recorded| {
            let compared = compare_runs(base, std::slice::from_ref(head), &request);
            (compared.verdict, compared.figures.len(), compared.failures)
        };
        let (verdict, figures, failures) = compared(&run, &load);
        assert_eq!((verdict, figures), (ComparisonVerdict::Failed, 0));
        assert_eq!(
            failures,
            ["runs/1 is a run with modes and runs/2 the result of a load: they have no cell in common"]
        );
        assert_eq!(compared(&load, &run), (verdict, figures, failures));
    }
    let runs = vec![load.run; 5];
    let history = History { file: "h.jsonl", runs: &runs, skipped_lines: &[] };
    let request = Request { across_environments: true, ..Request::default() };
    let judged = compare_with_history(&history, &[run], &request);
    assert_eq!((judged.verdict, judged.figures.len()), (ComparisonVerdict::Failed, 0));
    assert!(judged.environment_changes[0].contains("are left out"), "{:?}", judged.environment_changes);
}

fn history() -> Vec<HistoryRun> {
    let value = |number: usize| 100.0 + ((number * 7) % 5) as f64 * 0.5;
    let old = (0..8).map(|number| recorded(number, &[(P50, 500.0, 0.5 * value(number))]).run);
    let mut runs: Vec<HistoryRun> = old.collect();
    runs.extend((8..20).map(|number| recorded(number, &[(P50, 500.0, value(number))]).run));
    let mut other = recorded(20, &[(P50, 500.0, 1000.0)]).run;
    other.environment.insert("kernel".to_owned(), "6.8".to_owned());
    runs.push(other);
    runs
}

#[test]
fn history_judges_by_its_runs_since_the_last_change() {
    let runs = history();
    let history = History { file: "h.jsonl", runs: &runs, skipped_lines: &[] };
    let judged = |value: f64| {
        compare_with_history(&history, &[recorded(30, &[(P50, 500.0, value)])], &Request::default())
    };
    let worse = judged(120.0);
    assert_eq!(worse.verdict, ComparisonVerdict::Worse);
    let between = worse.figures[0].between_runs.clone().unwrap();
    assert_eq!((between.runs, between.since.as_deref()), (12, Some("runs/8")));
    assert_eq!(between.superiority, Some(1.0));
    let used = worse.finished.unwrap().history.unwrap();
    assert_eq!((used.runs, used.used), (21, 20));
    assert!(
        worse.environment_changes[0].starts_with("1 of 21 runs of the history are of another environment")
    );
    assert_eq!(judged(101.0).verdict, ComparisonVerdict::Equivalent);
    assert_eq!(judged(80.0).verdict, ComparisonVerdict::Better);
}

#[test]
fn judged_run_does_not_speak_for_itself_and_lost_figures_fail() {
    let runs = history();
    let history = History { file: "h.jsonl", runs: &runs, skipped_lines: &[] };
    let own = Recorded { run: runs[19].clone(), failures: Vec::new(), missing: Vec::new() };
    let compared = compare_with_history(&history, &[own], &Request::default());
    assert_eq!(compared.finished.unwrap().history.unwrap().used, 19);
    let lost = compare_with_history(&history, &[recorded(31, &[(P99, 500.0, 5.0)])], &Request::default());
    assert_eq!(lost.verdict, ComparisonVerdict::Failed);
    let few = History { runs: &runs[..3], ..history };
    let few = compare_with_history(&few, &[recorded(32, &[(P50, 500.0, 900.0)])], &Request::default());
    assert_eq!(few.figures[0].reason, Some(InconclusiveReason::TooFewRuns));
    let none = History { runs: &[], ..history };
    let none = compare_with_history(&none, &[recorded(33, &[(P50, 500.0, 9.0)])], &Request::default());
    assert_eq!(none.verdict, ComparisonVerdict::Failed);
}

#[test]
fn every_judged_run_has_its_own_figures() {
    let value = |number: usize| 100.0 + ((number * 7) % 5) as f64 * 0.5;
    let both = |number: usize, times: f64| [(P50, 500.0, value(number)), (P99, 500.0, times * value(number))];
    let runs: Vec<HistoryRun> = (0..12).map(|number| recorded(number, &both(number, 3.0)).run).collect();
    let history = History { file: "h.jsonl", runs: &runs, skipped_lines: &[] };
    // The first one has no p99, and that of the second is worse.
    let heads = [recorded(30, &both(30, 3.0)[..1]), recorded(31, &both(31, 6.0))];
    let compared = compare_with_history(&history, &heads, &Request::default());
    let of = |key: Metric| compared.figures.iter().find(|figure| figure.key == key).unwrap();
    assert_eq!(of(P99).verdict, FigureVerdict::Worse, "{compared:?}");
    assert_eq!(of(P99).head.map(|head| head.estimate), Some(6.0 * value(31)));
    assert_eq!(of(P50).head.map(|head| head.n), Some(2));
    assert_eq!(compared.failures, ["response_time_p99_us of sidecar at 500 requests/s is only in runs/11"]);
}

/// Of streams the first event is compared where both sides have it, and the end of the whole stream otherwise.
#[test]
fn first_events_take_the_place_of_response_times() {
    let keys = |base: &[(Metric, f64, f64)], head: &[(Metric, f64, f64)]| -> Vec<Metric> {
        let (base, head) = (recorded(1, base), recorded(2, head));
        let compared = compare_runs(&base, &[head], &Request::default());
        compared.figures.iter().map(|figure| figure.key).collect()
    };
    let service = Metric::ServiceTimeP50Us;
    let (first, byte, gap) = (Metric::FirstEventP50Us, Metric::FirstByteP50Us, Metric::EventGapP99Us);
    let of = |keys: &[Metric]| keys.iter().map(|key| (*key, 500.0, 100.0)).collect::<Vec<_>>();
    let stream = of(&[byte, first, gap, P50, service]);
    let mut compared = keys(&stream, &stream);
    compared.sort_unstable();
    assert_eq!(compared, [first, gap]);
    assert_eq!(keys(&of(&[P50, service]), &of(&[P50, service])), [P50]);
    assert!(keys(&stream, &of(&[P50, service])).contains(&P50), "a line of a version without first events");
}
