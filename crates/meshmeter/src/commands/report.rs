//! `meshmeter report`: rebuilds the report of a run from its directory.

use crate::cli::{AutomationArgs, ReportArgs};
use crate::failure::{Failure, MEASUREMENT_FAILED};
use report::RunData;
use report::folder::{self, FolderError, REPORT_FILE};
use report::side_by_side::SideBySide;
use report::terminal::{self, Options};
use statistics::{ObjectiveOutcome, is_missed, objective_met};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let run = RunData::read(&args.folder).map_err(folder_failure)?;
    for note in &run.notes {
        anstream::eprintln!("note: {note}");
    }
    if let Some(other) = &args.beside {
        return compare(&run, other, args);
    }
    match &args.output {
        Some(file) => {
            print(&run, args.json)?;
            write_html(&run, file)?;
        }
        None => publish(&run, &args.folder, args.json)?,
    }
    write_file("components", args.csv.as_deref(), || report::components_csv::table(&run.summary))?;
    write_file("latencies", args.latency_csv.as_deref(), || report::cells_csv::table(&run.summary))?;
    write_file("drivers", args.drivers_csv.as_deref(), || report::drivers_csv::drivers(&run.summary))?;
    write_file("services", args.services_csv.as_deref(), || report::drivers_csv::services(&run.summary))?;
    write_file("edges", args.edges_csv.as_deref(), || report::drivers_csv::edges(&run.summary))?;
    write_for_automation(&run, &args.automation)?;
    Ok(objective_status(&run))
}

/// Prints two runs side by side.
fn compare(run: &RunData, other: &Path, args: &ReportArgs) -> Result<ExitCode, Failure> {
    let other = RunData::read(other).map_err(folder_failure)?;
    let compared = SideBySide::new(run, &other);
    let text = if args.json {
        let json = serde_json::to_string_pretty(&compared);
        json.map_err(|error| Failure::environment(&error))? + "\n"
    } else {
        terminal::side_by_side_text(&compared, terminal_options())
    };
    print_text(&text)?;
    if let Some(file) = &args.output {
        let page = report::html::render_side_by_side(&compared);
        folder::write_whole(file, page.as_bytes()).map_err(folder_failure)?;
        anstream::eprintln!("report: {}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Exit status according to the run's objective; prints what is not met.
pub(super) fn objective_status(run: &RunData) -> ExitCode {
    let misses = match objective_met(&run.experiment, &run.summary) {
        ObjectiveOutcome::Good => return ExitCode::SUCCESS,
        ObjectiveOutcome::NothingValid => vec!["nothing was measured: no trial is valid".to_owned()],
        ObjectiveOutcome::CutShort { measured, planned } => {
            vec![format!(
                "the run was cut short: {measured} of {planned} trials were measured, and a part of a run meets no objective"
            )]
        }
        ObjectiveOutcome::Failed(misses) => {
            let how = if is_missed(&run.summary) { "not met" } else { "not shown to be met" };
            misses.into_iter().map(|miss| format!("objective {how}: {miss}")).collect()
        }
    };
    for miss in misses {
        anstream::eprintln!("{miss}");
    }
    ExitCode::from(MEASUREMENT_FAILED)
}

/// Prints a run's result and writes its summary and report into its directory.
pub fn publish(run: &RunData, folder: &Path, json: bool) -> Result<(), Failure> {
    print(run, json)?;
    folder::write_summary(folder, &run.summary).map_err(folder_failure)?;
    write_html(run, &folder.join(REPORT_FILE))
}

/// Writes the files that CI systems read.
pub(super) fn write_for_automation(run: &RunData, args: &AutomationArgs) -> Result<(), Failure> {
    write_file("JUnit", args.junit.as_deref(), || report::junit::render(run))?;
    write_file("Markdown", args.markdown.as_deref(), || report::markdown::render(run))
}

/// Writes a text file if a path is given.
fn write_file(name: &str, file: Option<&Path>, text: impl Fn() -> String) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    folder::write_whole(file, text().as_bytes()).map_err(folder_failure)?;
    anstream::eprintln!("{name}: {}", file.display());
    Ok(())
}

fn write_html(run: &RunData, file: &Path) -> Result<(), Failure> {
    folder::write_whole(file, report::html::render(run).as_bytes()).map_err(folder_failure)?;
    anstream::eprintln!("report: {}", file.display());
    Ok(())
}

fn print(run: &RunData, json: bool) -> Result<(), Failure> {
    let text = if json {
        let summary = serde_json::to_string_pretty(&run.summary);
        summary.map_err(|error| Failure::environment(&error))? + "\n"
    } else {
        terminal::render(&run.summary, terminal_options())
    };
    print_text(&text)
}

/// Writes a result to standard output.
pub(super) fn print_text(text: &str) -> Result<(), Failure> {
    match anstream::stdout().write_all(text.as_bytes()) {
        // A reader may close the pipe early, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::environment(&StandardOutput(error))),
    }
}

/// Options for the terminal on standard output; plain text with 120 columns for a file or a pipe.
pub(super) fn terminal_options() -> Options {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return Options { width: 120, colours: false };
    }
    let size = rustix::termios::tcgetwinsize(&stdout);
    let width = size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    Options { width: width.unwrap_or(80).clamp(60, 160), colours: true }
}

#[derive(Debug)]
struct StandardOutput(io::Error);

impl std::fmt::Display for StandardOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("write to standard output")
    }
}

impl std::error::Error for StandardOutput {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// A directory that is not a run is a usage error; files that cannot be read or written are environment
/// failures.
#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
pub(super) fn folder_failure(error: FolderError) -> Failure {
    let failure = match &error {
        FolderError::NoRun { .. } | FolderError::HasRun { .. } | FolderError::NotEmpty { .. } => {
            Failure::usage(error.to_string())
        }
        _ => Failure::environment(&error),
    };
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
