//! Run output for CI systems: JUnit and Markdown.

mod fixture;

use experiment::schema::{DriverObjective, TrialOutcome, TrialRecord, UnavailableMode};
use experiment::{Experiment, Mode};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus};
use report::{RunData, junit, markdown};

/// Three modes, one of which missed the objective; a trial that failed, and a mode that could not run.
fn run() -> RunData {
    let mut trials: Vec<TrialRecord> = fixture::usual_trials();
    let failed = &mut trials[7];
    failed.outcome = TrialOutcome::Failed;
    failed.verdict.valid = false;
    failed.verdict.reasons = vec!["failed: server-proxy ended with signal 9".to_owned()];
    failed.hints = vec!["meshmeter doctor".to_owned()];
    failed.log_tails.insert("server-proxy".to_owned(), vec!["\u{1b}[31mfatal\u{1b}[0m <a> & ]]>".to_owned()]);
    failed.result = None;
    let run = fixture::run(trials);
    let yaml = run.experiment_yaml.clone() + "objective: {p99: 700us, errors: 1%}\n";
    let experiment = Experiment::parse(&yaml, "experiment.yaml").expect("a good experiment");
    let mut host = run.host;
    host.refused_modes = vec![UnavailableMode {
        mode: Mode::Ambient,
        factors: Default::default(),
        reason: "there is no ztunnel".to_owned(),
        hint: None,
    }];
    let planned = run.trials.len() + 1;
    RunData::new(yaml, experiment, 42, planned, host, run.trials, Vec::new())
}

fn cases(report: &Report) -> Vec<&TestCase> {
    report.test_suites.iter().flat_map(|suite| &suite.test_cases).collect()
}

#[test]
fn junit_counts_missed_objectives_and_failed_trials() {
    let run = run();
    let text = junit::render(&run);
    insta::assert_snapshot!(text);
    let report = Report::deserialize_from_str(&text).expect("well-formed JUnit");
    let cases = cases(&report);
    let of_kind = |kind| {
        let is = |case: &&&TestCase| matches!(&case.status, TestCaseStatus::NonSuccess { kind: own, .. } if *own == kind);
        cases.iter().filter(is).count()
    };
    let skipped = cases.iter().filter(|case| matches!(case.status, TestCaseStatus::Skipped { .. })).count();
    let suite = &report.test_suites[0];
    assert_eq!((suite.tests, suite.skipped), (cases.len(), skipped));
    assert_eq!(suite.failures, of_kind(NonSuccessKind::Failure));
    // A proxy that died, a trial that failed, and a missing trial.
    assert_eq!((suite.errors, of_kind(NonSuccessKind::Error)), (3, 3));
    let unmet = run.summary.cells.iter().filter(|cell| cell.objective != Some(DriverObjective::Met));
    assert!(unmet.count() > 0 && suite.failures > 0);
    let excluded = run.trials.iter().filter(|trial| !trial.verdict.valid).count();
    assert_eq!(skipped, excluded - 2 + run.host.refused_modes.len());
}

#[test]
fn junit_without_objective_has_a_case_per_cell() {
    let run = fixture::run(fixture::usual_trials());
    let report = Report::deserialize_from_str(&junit::render(&run)).expect("well-formed JUnit");
    let measured = cases(&report).into_iter().filter(|case| case.name.as_str().ends_with(": measured"));
    assert_eq!(measured.count(), run.summary.cells.len());
    assert_eq!(report.test_suites[0].failures, 0);
    let nothing = fixture::run(Vec::new());
    let report = Report::deserialize_from_str(&junit::render(&nothing)).expect("well-formed JUnit");
    assert_eq!(report.test_suites[0].failures, nothing.summary.cells.len(), "nothing valid is exit status 1");
}

#[test]
fn markdown_has_findings_tables_and_exclusions() {
    insta::assert_snapshot!(markdown::render(&run()));
}

#[test]
fn markdown_fits_into_a_comment() {
    let runs = [
        fixture::run(fixture::many_trials()),
        fixture::run(fixture::tenant_trials(50)),
        fixture::fleets::fleet_run("proxies", &["100", "200"]),
        fixture::run(Vec::new()),
    ];
    for run in runs {
        let page = markdown::render(&run);
        assert!(page.len() < 65_536, "{} bytes", page.len());
        assert!(page.contains("<sub>AMD EPYC"), "the machine is always named");
        let width =
            page.lines().filter(|line| line.starts_with("| ")).map(|line| line.matches(" | ").count());
        let widths: std::collections::BTreeSet<usize> = width.collect();
        assert!(widths.len() <= 1, "rows are as wide as their header: {widths:?}");
    }
}
