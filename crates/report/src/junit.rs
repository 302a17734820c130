//! A run as JUnit XML, for CI systems.
//!
//! The run is a suite. Each cell has a case per part of the objective, or one case without an objective.
//! Failed trials, and trials missing from a run that ended early, are errors. Excluded trials, and modes that
//! could not run, are skipped cases. A failure means that the exit status is 1; errors beside good cells do
//! not change the exit status.

use crate::RunData;
use crate::sentences;
use experiment::schema::{Cell, DriverObjective, TrialOutcome, TrialRecord, UnavailableMode};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use statistics::objective::{ObjectiveCheck, checks};
use statistics::words;

/// The document, ending with a line break.
///
/// # Panics
/// Never: characters that XML does not allow are removed from all strings.
#[must_use]
pub fn render(run: &RunData) -> String {
    let mut report = Report::new("meshmeter");
    report.add_test_suite(suite(run));
    let text = report.to_string().expect("a document in memory can be written");
    text.trim_end().to_owned() + "\n"
}

fn suite(run: &RunData) -> TestSuite {
    let summary = &run.summary;
    let mut suite = TestSuite::new(summary.name.as_str());
    suite.timestamp = run.trials.first().and_then(|trial| trial.started_at.parse().ok());
    suite.add_properties(properties(run));
    for cell in &summary.cells {
        suite.add_test_cases(cell_cases(run, cell));
    }
    suite.add_test_cases(summary.host.refused_modes.iter().map(|mode| unavailable_mode(run, mode)));
    suite.add_test_cases(run.trials.iter().filter_map(|trial| trial_case(run, trial)));
    suite.add_test_cases(missing_trials(run));
    if let (Some(headline), _) = sentences::opening(summary) {
        suite.set_system_out(headline);
    }
    suite
}

/// The seed, the machine and the versions.
fn properties(run: &RunData) -> Vec<Property> {
    let host = &run.host;
    let mut properties = vec![
        Property::new("question", run.summary.question.as_str()),
        Property::new("seed", run.summary.seed.to_string()),
        Property::new("cpu", host.cpu_model.as_str()),
        Property::new("cpus", host.cpus.to_string()),
        Property::new("kernel", host.kernel.as_str()),
    ];
    let versions = host.versions.iter();
    properties.extend(
        versions.map(|version| Property::new(format!("version.{}", version.name), version.version.as_str())),
    );
    properties
}

fn case(run: &RunData, class: &str, name: String, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("{}.{class}", run.summary.name));
    case
}

/// One case per part of the objective; a single case without an objective.
fn cell_cases(run: &RunData, cell: &Cell) -> Vec<TestCase> {
    let place = words::cell(cell);
    let checks = checks(&run.experiment.objective, cell);
    if checks.is_empty() {
        return vec![case(run, cell.mode.name(), format!("{place}: measured"), measured(run, cell))];
    }
    let of_check = |check: ObjectiveCheck| {
        let mut case = case(run, cell.mode.name(), format!("{place}: {}", check.name), status(&check));
        if let Some(measured) = check.measured {
            case.set_system_out(measured);
        }
        case
    };
    checks.into_iter().map(of_check).collect()
}

fn status(check: &ObjectiveCheck) -> TestCaseStatus {
    let kind = match check.outcome {
        DriverObjective::Met => return TestCaseStatus::success(),
        DriverObjective::Missed => "missed",
        DriverObjective::NotShown => "not-shown",
    };
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(kind).set_message(check.misses.join("; "));
    status
}

/// Without an objective, a run fails only if nothing valid was measured.
fn measured(run: &RunData, cell: &Cell) -> TestCaseStatus {
    if cell.valid > 0 {
        return TestCaseStatus::success();
    }
    let mut status = match run.summary.cells.iter().any(|cell| cell.valid > 0) {
        true => TestCaseStatus::skipped(),
        false => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    status.set_type(cell.verdict.as_str()).set_message(format!("no valid trial ({})", cell.verdict));
    status
}

fn unavailable_mode(run: &RunData, unavailable: &UnavailableMode) -> TestCase {
    let factors = unavailable.factors.iter().map(|(key, value)| format!(", {key} {value}"));
    let name = format!("mode {}{}", unavailable.mode, factors.collect::<String>());
    let mut status = TestCaseStatus::skipped();
    let hint = unavailable.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    status.set_type("unavailable").set_message(format!("{}{hint}", unavailable.reason));
    case(run, unavailable.mode.name(), name, status)
}

/// A case for a trial that failed or is excluded; `None` for a valid trial.
fn trial_case(run: &RunData, trial: &TrialRecord) -> Option<TestCase> {
    let mut status = match (trial.outcome, trial.verdict.valid) {
        (TrialOutcome::Failed, _) => TestCaseStatus::non_success(NonSuccessKind::Error),
        (_, true) => return None,
        (_, false) => TestCaseStatus::skipped(),
    };
    let first = trial.verdict.reasons.first().map_or("no reason recorded", String::as_str);
    status.set_type(first.split(':').next().unwrap_or_default()).set_message(first);
    let logs = trial.log_tails.iter().flat_map(|(component, lines)| {
        std::iter::once(format!("Last lines of {component}:")).chain(lines.iter().cloned())
    });
    let further = trial.verdict.reasons.iter().skip(1).chain(&trial.hints).cloned();
    let details: Vec<String> = further.chain(logs).collect();
    if !details.is_empty() {
        status.set_description(details.join("\n"));
    }
    let name = format!("trial {}, {}", trial.index + 1, words::place(trial.cell()));
    Some(case(run, "trials", name, status))
}

/// An error if the run ended before its last trial.
fn missing_trials(run: &RunData) -> Option<TestCase> {
    let (recorded, planned) = (run.summary.places_recorded(), run.summary.trials_planned);
    if recorded >= planned {
        return None;
    }
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type("cut-short").set_message(format!("{recorded} of {planned} trials were recorded"));
    Some(case(run, "trials", "every planned trial".to_owned(), status))
}
