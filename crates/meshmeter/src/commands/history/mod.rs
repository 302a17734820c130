//! `meshmeter history`: the file is that of [`report::history_file`], the course that of [`statistics::history`].

use super::finished::subject;
use crate::cli::{AddArgs, HistoryArgs, HistoryCommand, PruneArgs, ShowArgs};
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::input;
use crate::output::{self, tell};
use report::folder::FolderError;
use report::history_file::{HistoryFile, LockedHistory};
use results::HistoryRun;
use statistics::history::course;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &HistoryArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        HistoryCommand::Add(args) => add(args),
        HistoryCommand::Show(args) => show(args),
        HistoryCommand::Prune(args) => prune(args),
    }
}

/// Reads a history, and says which of its lines cannot be read.
pub(super) fn read_history(file: &Path) -> Result<HistoryFile, Failure> {
    let opened = input::open(file);
    let opened = opened.map_err(|source| FolderError::Read { path: file.to_owned(), source: source.into() });
    let history = opened.and_then(|opened| HistoryFile::read_from(opened, file)).map_err(history_failure)?;
    say_skipped(&history, file);
    Ok(history)
}

fn say_skipped(history: &HistoryFile, file: &Path) {
    for line in &history.skipped {
        tell!(
            "note: {}: line {} cannot be read and is left out: {}",
            file.display(),
            line.number,
            line.reason
        );
    }
}

/// A path that is not that of a history is a usage error. Hints of run directories do not fit a history.
#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
fn history_failure(error: FolderError) -> Failure {
    use ErrorKind::{IsADirectory, NotADirectory, NotFound};
    let is_of_path = match &error {
        FolderError::Read { .. } => true,
        FolderError::Write { source, .. } => matches!(source.kind(), NotFound | IsADirectory | NotADirectory),
        _ => false,
    };
    if is_of_path { Failure::from_usage(&error) } else { Failure::environment(&error) }
}

fn add(args: &AddArgs) -> Result<ExitCode, Failure> {
    // Before the lock: a run may be large.
    let runs = args.runs.iter().map(|path| subject::read_as_reported(path)).collect::<Result<Vec<_>, _>>()?;
    let file = &args.file;
    let mut locked = LockedHistory::open(file).map_err(history_failure)?;
    let history = locked.read(file).map_err(history_failure)?;
    say_skipped(&history, file);
    let mut known = history.runs;
    let mut all_added = true;
    for recorded in runs {
        let run = HistoryRun { label: args.label.clone(), ..recorded.run };
        for failure in recorded.failures.iter().chain(&recorded.missing) {
            tell!("{failure}");
        }
        if !recorded.failures.is_empty() {
            tell!("not added: {}", run.run);
            all_added = false;
        } else if known.iter().any(|other| other.is_same_run(&run)) {
            tell!("already in the history: {}", run.run);
        } else {
            locked.append(&run, file).map_err(history_failure)?;
            run.limits.iter().for_each(|limit| tell!("note: {}: {limit}", run.run));
            tell!("added: {} ({} figures)", run.run, run.figures.len());
            known.push(run);
        }
    }
    Ok(if all_added { ExitCode::SUCCESS } else { ExitCode::from(MEASUREMENT_FAILED) })
}

fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let history = read_history(&args.file)?;
    let mut course = course(&args.file.display().to_string(), &history.runs, &history.skipped_lines());
    if let Some(wanted) = &args.figure {
        for group in &mut course.groups {
            group.series.retain(|series| series.key.key().contains(wanted.as_str()));
        }
        course.groups.retain(|group| !group.series.is_empty());
        if course.groups.is_empty() {
            return Err(Failure::usage(format!(
                "--figure {wanted}: no figure of the history has this in its key"
            )));
        }
    }
    output::print(&if args.json { output::json(&course) } else { report::history::text(&course) })?;
    Ok(ExitCode::SUCCESS)
}

fn prune(args: &PruneArgs) -> Result<ExitCode, Failure> {
    let file = &args.file;
    // Opening would make it.
    HistoryFile::read(file).map_err(history_failure)?;
    let mut locked = LockedHistory::open(file).map_err(history_failure)?;
    let history = locked.read(file).map_err(history_failure)?;
    if let Some(line) = history.skipped.first() {
        let file = file.display();
        return Err(Failure::usage(format!("{file}: line {} cannot be read: {}", line.number, line.reason))
            .with_hint("pruning would delete it: mend or remove the line first"));
    }
    let all = history.runs.len();
    let first_kept = all.saturating_sub(args.keep.unwrap_or(all));
    let is_kept = |run: &HistoryRun| {
        let started = run.started_at.as_deref().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        started.zip(args.before).is_none_or(|(started, before)| started >= before)
    };
    let is_kept = |number: usize, run: &HistoryRun| number >= first_kept && is_kept(run);
    let kept = history.runs.iter().enumerate().filter(|(number, run)| is_kept(*number, run)).count();
    if kept < all {
        locked.retain(file, is_kept).map_err(history_failure)?;
    }
    tell!("kept {kept} of {all} runs");
    Ok(ExitCode::SUCCESS)
}
