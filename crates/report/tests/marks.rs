//! Figures that are unusable in some trials, or fall among requests without a response, in every output.

mod fixture;

use report::RunData;
use report::side_by_side::{Row, SideBySide};
use report::terminal::{Options, render};
use results::{ExpectedStatuses, Figure, Figures, Mode, TrialRecord};
use std::path::Path;

/// At 1000/s, 40 requests of the sidecar's first trial have no response after a second. With the gateway, the
/// generator is late at p99 in two trials.
fn run() -> RunData {
    let mut trials = fixture::trials(&[Mode::None, Mode::Gateway, Mode::Sidecar], &[500.0, 1000.0], 5);
    let at_1000 = |trial: &TrialRecord, mode| trial.mode == mode && trial.load.rate == Some(1000.0);
    for trial in &mut trials {
        if at_1000(trial, Mode::Sidecar) && trial.repeat == 0 {
            let result = trial.result.as_mut().expect("every trial has a result");
            result.requests.failed = 40;
            result.censored_above_us = Some(1_000_000.0);
            let times = &mut result.response_time_us;
            times.censored = 40;
            (times.p99, times.p99_9, times.p99_99, times.max) = (None, None, None, None);
            times.mean = None;
        }
        if at_1000(trial, Mode::Gateway) && trial.repeat < 2 {
            trial.verdict.spoil("schedule-lag: 1.2 ms at p99", Figures::times_from(Figure::P99));
        }
        if trial.mode == Mode::Gateway && trial.load.rate == Some(500.0) {
            trial.verdict.spoil("steal: 12 % of all CPUs", Figures::times_from(Figure::P99));
        }
    }
    fixture::run(trials)
}

#[test]
fn page_names_expected_statuses_only_if_there_are_any() {
    let mut run = run();
    let stated = "its status is not among the expected ones: 2xx, 304.";
    assert!(!report::html::render(&run).contains("expected ones"));
    let expected = ["2xx", "304"].map(|text| text.parse().expect("a status"));
    run.experiment.load.expected_status = ExpectedStatuses::new(expected.to_vec());
    assert!(report::html::render(&run).contains(stated));
}

#[test]
fn percentile_among_unanswered_requests_is_shown_as_lower_bound() {
    let run = run();
    let cell =
        run.summary.cells.iter().find(|cell| cell.mode == Mode::Sidecar && cell.load.rate == Some(1000.0));
    let cell = cell.expect("the cell was measured");
    let times = cell.response_time_us.expect("the cell was measured");
    assert_eq!((times.p99, times.censored.map(|censored| censored.from)), (None, Some(Figure::P99)));
    assert!(times.p95.is_some() && times.max.is_none());

    let terminal = render(&run.summary, Options { width: 120, colours: false });
    let row = terminal.lines().filter(|line| line.starts_with("sidecar")).nth(1).expect("the row at 1000/s");
    assert!(row.contains("> 1000 ms") || row.contains(">\u{a0}1000\u{a0}ms"), "{terminal}");
    let page = report::html::render(&run);
    assert!(page.contains("<span>&gt;\u{a0}1000\u{a0}ms"), "p99 of the sidecar");

    let beside = SideBySide::new([&run, &run], ["a", "b"].map(Path::new));
    let is_it = |row: &&Row| row.figure == "p99" && row.cell.starts_with("sidecar at 1000");
    let row = beside.rows.iter().find(is_it).expect("p99 is known not to be a number");
    assert_eq!((row.texts[0].as_str(), row.ratio), (">\u{a0}1000\u{a0}ms", None));

    let csv = report::cells_csv::table(&run.summary);
    let field = |name: &str, line: &str| {
        let position = csv.lines().next().unwrap().split(',').position(|other| other == name).unwrap();
        line.split(',').nth(position).unwrap().to_owned()
    };
    let is_it = |line: &&str| field("mode", line) == "sidecar" && field("rate", line) == "1000";
    let line = csv.lines().find(is_it).expect("the cell has a line");
    assert_eq!([field("p99_us", line), field("p99_us_low", line)], ["inf", "1000000"]);
    assert_eq!((field("p95_us_n", line).as_str(), field("mean_us", line).as_str()), ("5", ""));
}

#[test]
fn spoiled_figure_is_shown_with_reason_and_left_out_of_estimates() {
    let run = run();
    let terminal = render(&run.summary, Options { width: 120, colours: false });
    assert!(
        terminal.contains("* gateway at 1000/s: p99 and beyond in 2 trials: schedule-lag."),
        "{terminal}"
    );
    let rows = terminal.lines().filter(|line| line.starts_with("gateway") && line.contains("5/5"));
    assert_eq!(rows.filter(|row| row.contains('*')).count(), 2, "{terminal}");

    let page = report::html::render(&run);
    assert!(
        page.contains("title=\"Unusable in 2 of 5 trials: schedule-lag.\">of 3 trials<"),
        "p99 of some trials"
    );
    assert!(page.contains("title=\"Unusable in 5 of 5 trials: steal.\">unusable: steal<"), "p99 of no trial");
    assert_eq!(
        page.matches(", unusable: schedule-lag: 1.2 ms at p99</title>").count(),
        2,
        "the medians are sound"
    );
    let table = page.split("<summary>Every trial").nth(1).expect("the table of trials");
    assert_eq!(table.matches("p99 and beyond</td>").count(), 7);
    assert!(table.contains("title=\"schedule-lag: 1.2 ms at p99\""));

    let csv = report::cells_csv::table(&run.summary);
    assert!(csv.contains("p99 and beyond in 2 trials: schedule-lag"), "{csv}");
}
