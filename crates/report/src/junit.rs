//! A run as JUnit XML, for CI systems.
//!
//! The run is a suite. Each cell has a case per part of the objective, or one case without an objective.
//! Failed trials, and trials missing from a run that ended early, are errors. Excluded trials, and modes that
//! could not run, are skipped cases. A failure means that the exit status is 1; errors beside good cells do
//! not change the exit status.

mod comparison;
mod document;

pub use comparison::comparison;

use crate::RunData;
use crate::disturbed;
use crate::sentences;
use document::{Case, Kind, Status, Suite};
use jiff::Timestamp;
use results::{Cell, DriverObjective, TrialOutcome, TrialRecord, UnavailableMode, with_factors};
use statistics::is_excluded;
use statistics::objective::{ObjectiveCheck, checks};
use statistics::words;

/// The document, ending with a line break.
#[must_use]
pub fn render(run: &RunData) -> String {
    let summary = &run.summary;
    let mut cases: Vec<Case> = summary.cells.iter().flat_map(|cell| cell_cases(run, cell)).collect();
    cases.extend(summary.host.refused_modes.iter().map(|mode| unavailable_mode(run, mode)));
    cases.extend(run.trials.iter().filter_map(|trial| trial_case(run, trial)));
    cases.extend(missing_trials(run));
    document::text(&Suite {
        name: &summary.name,
        started_at: run.trials.first().and_then(|trial| trial.started_at.parse::<Timestamp>().ok()),
        properties: properties(run),
        cases,
        output: output(run),
    })
}

/// The headline, below noise that the user accepted.
fn output(run: &RunData) -> Option<String> {
    let headline = sentences::opening(&run.summary).0.map(|headline| headline.text.clone());
    let lines: Vec<String> = disturbed::accepted(&run.summary).into_iter().chain(headline).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The seed, the machine, the versions, and noise that the user accepted.
fn properties(run: &RunData) -> Vec<(String, String)> {
    let host = &run.host;
    let named = [
        ("question", run.summary.question.clone()),
        ("seed", run.summary.seed.to_string()),
        ("cpu", host.cpu_model.clone()),
        ("cpus", host.cpus.to_string()),
        ("kernel", host.kernel.clone()),
    ];
    let mut properties: Vec<_> = named.map(|(name, value)| (name.to_owned(), value)).into();
    let noise = disturbed::accepted(&run.summary);
    properties.extend(noise.map(|text| ("noise-accepted".to_owned(), text)));
    let versions = host.versions.iter();
    properties.extend(versions.map(|version| (format!("version.{}", version.name), version.version.clone())));
    properties
}

/// `status`: absent if it succeeded.
fn case(run: &RunData, class: &str, name: String, status: Option<Status>) -> Case {
    Case { class: format!("{}.{class}", run.summary.name), name, status, output: None }
}

/// One case per part of the objective; a single case without an objective.
fn cell_cases(run: &RunData, cell: &Cell) -> Vec<Case> {
    let place = words::cell(cell);
    let checks = checks(&run.experiment.objective, cell);
    if checks.is_empty() {
        return vec![case(run, cell.mode.name(), format!("{place}: measured"), measured(run, cell))];
    }
    let of_check = |check: ObjectiveCheck| {
        let mut case = case(run, cell.mode.name(), format!("{place}: {}", check.name), status(&check));
        case.output = check.measured;
        case
    };
    checks.into_iter().map(of_check).collect()
}

fn status(check: &ObjectiveCheck) -> Option<Status> {
    let reason = match check.outcome {
        DriverObjective::Met => return None,
        DriverObjective::Missed => "missed",
        DriverObjective::NotShown => "not-shown",
    };
    Some(Status::new(Kind::Failure, reason, check.misses.join("; ")))
}

/// Without an objective, a run fails only if nothing valid was measured.
fn measured(run: &RunData, cell: &Cell) -> Option<Status> {
    if cell.valid > 0 {
        return None;
    }
    let others_are_valid = run.summary.cells.iter().any(|cell| cell.valid > 0);
    let kind = if others_are_valid { Kind::Skipped } else { Kind::Failure };
    Some(Status::new(kind, cell.verdict.as_str(), format!("no valid trial ({})", cell.verdict)))
}

fn unavailable_mode(run: &RunData, unavailable: &UnavailableMode) -> Case {
    let name = with_factors(format!("mode {}", unavailable.mode), &unavailable.factors);
    let hint = unavailable.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    let status = Status::new(Kind::Skipped, "unavailable", format!("{}{hint}", unavailable.reason));
    case(run, unavailable.mode.name(), name, Some(status))
}

/// A case for a trial that failed or is excluded; `None` for a valid trial.
fn trial_case(run: &RunData, trial: &TrialRecord) -> Option<Case> {
    let kind = match (trial.outcome, is_excluded(trial)) {
        (TrialOutcome::Failed, _) => Kind::Error,
        (_, false) => return None,
        (_, true) => Kind::Skipped,
    };
    let first = trial.verdict.reasons.first().map_or("no reason recorded", String::as_str);
    let mut status = Status::new(kind, first.split(':').next().unwrap_or_default(), first.to_owned());
    let logs = trial.log_tails.iter().flat_map(|(component, lines)| {
        std::iter::once(format!("Last lines of {component}:")).chain(lines.iter().cloned())
    });
    let further = trial.verdict.reasons.iter().skip(1).chain(&trial.hints).cloned();
    let details: Vec<String> = further.chain(logs).collect();
    status.details = (!details.is_empty()).then(|| details.join("\n"));
    let name = format!("trial {}, {}", trial.index + 1, words::place(trial.cell()));
    Some(case(run, "trials", name, Some(status)))
}

/// An error if the run ended before its last trial.
fn missing_trials(run: &RunData) -> Option<Case> {
    let (recorded, planned) = (run.summary.places_recorded(), run.summary.trials_planned);
    if recorded >= planned {
        return None;
    }
    let message = format!("{recorded} of {planned} trials were recorded");
    let status = Status::new(Kind::Error, "cut-short", message);
    Some(case(run, "trials", "every planned trial".to_owned(), Some(status)))
}
