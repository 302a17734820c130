//! Run output for CI systems: JUnit and Markdown.

mod fixture;

use experiment::Experiment;
use quick_xml::events::Event;
use quick_xml::{Reader, XmlVersion};
use report::{RunData, junit, markdown};
use results::{DriverObjective, Mode, TrialOutcome, TrialRecord, UnavailableMode};

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

/// Content that a reader of JUnit XML finds.
#[derive(Default)]
struct Report {
    /// Of the suite: tests, skipped, failures, errors.
    counts: [usize; 4],
    cases: Vec<Found>,
}

#[derive(Default)]
struct Found {
    name: String,
    /// `failure`, `error` or `skipped`.
    status: Option<String>,
}

impl Report {
    fn read(text: &str) -> Self {
        let mut reader = Reader::from_str(text);
        let mut report = Self::default();
        loop {
            let element = match reader.read_event().expect("well-formed XML") {
                Event::Start(element) | Event::Empty(element) => element,
                Event::Eof => return report,
                _ => continue,
            };
            let attribute = |name: &str| {
                let value = element.try_get_attribute(name).unwrap().expect("every element has it");
                value.normalized_value(XmlVersion::Explicit1_0).unwrap().into_owned()
            };
            match std::str::from_utf8(element.name().as_ref()).unwrap() {
                "testsuite" => {
                    let names = ["tests", "skipped", "failures", "errors"];
                    report.counts = names.map(|name| attribute(name).parse().unwrap());
                }
                "testcase" => report.cases.push(Found { name: attribute("name"), status: None }),
                status @ ("failure" | "error" | "skipped") => {
                    report.cases.last_mut().expect("a case").status = Some(status.to_owned());
                }
                _ => {}
            }
        }
    }

    fn of_status(&self, status: &str) -> usize {
        self.cases.iter().filter(|case| case.status.as_deref() == Some(status)).count()
    }
}

#[test]
fn junit_counts_missed_objectives_and_failed_trials() {
    let run = run();
    let text = junit::render(&run);
    insta::assert_snapshot!(text);
    let report = Report::read(&text);
    let (failures, skipped) = (report.of_status("failure"), report.of_status("skipped"));
    // A proxy that died, a trial that failed, and a missing trial.
    assert_eq!(report.of_status("error"), 3);
    assert_eq!(report.counts, [report.cases.len(), skipped, failures, 3]);
    let unmet = run.summary.cells.iter().filter(|cell| cell.objective != Some(DriverObjective::Met));
    assert!(unmet.count() > 0 && failures > 0);
    let excluded = run.trials.iter().filter(|trial| !trial.verdict.valid).count();
    assert_eq!(skipped, excluded - 2 + run.host.refused_modes.len());
}

#[test]
fn junit_without_objective_has_a_case_per_cell() {
    let run = fixture::run(fixture::usual_trials());
    let report = Report::read(&junit::render(&run));
    let measured = report.cases.iter().filter(|case| case.name.ends_with(": measured"));
    assert_eq!(measured.count(), run.summary.cells.len());
    assert_eq!(report.of_status("failure"), 0);
    let nothing = fixture::run(Vec::new());
    let report = Report::read(&junit::render(&nothing));
    assert_eq!(report.of_status("failure"), nothing.summary.cells.len(), "nothing valid is exit status 1");
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
