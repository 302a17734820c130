//! `meshmeter report`: rebuilds the report of a run from its directory.

use crate::cli::{AutomationArgs, NoiseArgs, ReportArgs};
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::output::{self, Destination, tell};
use report::RunData;
use report::folder::{self, FolderError, REPORT_FILE};
use report::side_by_side::SideBySide;
use report::terminal::{self, Options};
use statistics::{ObjectiveOutcome, is_missed, objective_met};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(args: &ReportArgs) -> Result<ExitCode, Failure> {
    if let Some(status) = super::run::compare::report(args)? {
        return Ok(status);
    }
    let run = read(&args.folder, &args.noise)?;
    if args.strict {
        let folder = args.folder.display();
        return Err(Failure::usage(format!("--strict: {folder} is a run, not a comparison")));
    }
    for note in &run.notes {
        tell!("note: {note}");
    }
    if let Some(other) = &args.beside {
        return compare(&run, other, args);
    }
    let report = match &args.output {
        Some(output) => output.clone(),
        None => {
            folder::write_summary(&args.folder, &run.summary).map_err(folder_failure)?;
            own_file(&args.folder, REPORT_FILE)?
        }
    };
    let mut files = Files::default();
    files.write("report", Some(&report), || report::html::render(&run))?;
    files.write("components", args.csv.as_deref(), || report::components_csv::table(&run.summary))?;
    files.write("latencies", args.latency_csv.as_deref(), || report::cells_csv::table(&run.summary))?;
    files.write("drivers", args.drivers_csv.as_deref(), || report::drivers_csv::drivers(&run.summary))?;
    files.write("services", args.services_csv.as_deref(), || report::drivers_csv::services(&run.summary))?;
    files.write("edges", args.edges_csv.as_deref(), || report::drivers_csv::edges(&run.summary))?;
    files.write_for_automation(&run, &args.automation)?;
    files.print(|| text(&run, args.json))?;
    Ok(objective_status(&run))
}

/// The run in a directory, with noise of the machine accepted if the user says so.
pub(super) fn read(folder: &Path, noise: &NoiseArgs) -> Result<RunData, Failure> {
    let run = RunData::read(folder).map_err(folder_failure)?;
    Ok(if noise.accept_noise { run.accepting_noise() } else { run })
}

/// Options of tables that only a run has.
pub(super) fn tables_of_runs(args: &ReportArgs) -> [(&'static str, &Option<PathBuf>); 5] {
    [
        ("--csv", &args.csv),
        ("--latency-csv", &args.latency_csv),
        ("--drivers-csv", &args.drivers_csv),
        ("--services-csv", &args.services_csv),
        ("--edges-csv", &args.edges_csv),
    ]
}

/// Files that a command has written. They are written before anything is printed, and named after the result.
#[derive(Default)]
pub(super) struct Files {
    /// `report: runs/a/report.html`
    lines: Vec<String>,
    /// True if one of them is standard output, which the result for people then leaves alone.
    is_stdout_taken: bool,
}

impl Files {
    /// Writes a text file if a path is given.
    pub(super) fn write(
        &mut self,
        name: &str,
        path: Option<&Path>,
        text: impl Fn() -> String,
    ) -> Result<(), Failure> {
        let Some(path) = path else { return Ok(()) };
        let destination = Destination::from_path(path);
        match &destination {
            Destination::Stdout => self.is_stdout_taken = true,
            Destination::File(path) => self.lines.push(format!("{name}: {}", path.display())),
        }
        write(&destination, &text())
    }

    /// Writes the files that CI systems read.
    fn write_for_automation(&mut self, run: &RunData, args: &AutomationArgs) -> Result<(), Failure> {
        self.write("JUnit", args.junit.as_deref(), || report::junit::render(run))?;
        self.write("Markdown", args.markdown.as_deref(), || report::markdown::render(run))
    }

    /// Prints the result, then the files.
    pub(super) fn print(&self, result: impl Fn() -> String) -> Result<(), Failure> {
        if !self.is_stdout_taken {
            output::print(&result())?;
        }
        self.lines.iter().for_each(|line| tell!("{line}"));
        Ok(())
    }
}

/// Writes a text. An error of a file has its hint.
pub(super) fn write(destination: &Destination, text: &str) -> Result<(), Failure> {
    match destination {
        Destination::Stdout => destination.write(text.as_bytes()),
        Destination::File(path) => folder::write_whole(path, text.as_bytes()).map_err(folder_failure),
    }
}

/// Path of a file in the directory of a run or a comparison that is never a link.
pub(super) fn own_file(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    folder::own_file(folder, name).map_err(folder_failure)
}

/// Prints two runs side by side.
fn compare(run: &RunData, folder: &Path, args: &ReportArgs) -> Result<ExitCode, Failure> {
    let other = RunData::read(folder).map_err(folder_failure)?;
    let compared = SideBySide::new([run, &other], [&args.folder, folder]);
    let mut files = Files::default();
    files.write("report", args.output.as_deref(), || report::html::render_side_by_side(&compared))?;
    files.print(|| {
        if args.json {
            output::json(&compared)
        } else {
            terminal::side_by_side_text(&compared, terminal_options())
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Exit status according to the run's objective; prints what is not met.
pub(super) fn objective_status(run: &RunData) -> ExitCode {
    let misses = match objective_met(&run.experiment, &run.summary) {
        ObjectiveOutcome::Good => return ExitCode::SUCCESS,
        ObjectiveOutcome::NothingValid => vec!["no trial is valid".to_owned()],
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
        tell!("{miss}");
    }
    ExitCode::from(MEASUREMENT_FAILED)
}

/// Writes the summary and the report of a run into its directory, then what CI systems read, and prints the result.
pub fn publish(run: &RunData, folder: &Path, json: bool, automation: &AutomationArgs) -> Result<(), Failure> {
    folder::write_summary(folder, &run.summary).map_err(folder_failure)?;
    let mut files = Files::default();
    files.write("report", Some(&own_file(folder, REPORT_FILE)?), || report::html::render(run))?;
    files.write_for_automation(run, automation)?;
    files.print(|| text(run, json))
}

/// A run's result as JSON, or for people.
fn text(run: &RunData, json: bool) -> String {
    if json { output::json(&run.summary) } else { terminal::render(&run.summary, terminal_options()) }
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

/// Hint on a directory with a run that the command cannot replace.
pub(super) const ANOTHER_FOLDER: &str = "name another folder with --out";

/// A directory that is not a run is a usage error; files that cannot be read or written are environment
/// failures.
#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
pub(super) fn folder_failure(error: FolderError) -> Failure {
    let failure = match &error {
        FolderError::NoRun { .. }
        | FolderError::HasRun { .. }
        | FolderError::InUse { .. }
        | FolderError::NotEmpty { .. } => Failure::usage(error.to_string()),
        _ => Failure::environment(&error),
    };
    failure.with_some_hint(error.hint())
}
