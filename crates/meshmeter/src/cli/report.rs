//! Options of `meshmeter report`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Makes report.html and summary.json again from the trials that a run recorded, and prints the result.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run's folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Compare with this run of the same experiment, made elsewhere: figures side by side, and what differs between the two
    /// places. Prints text, or JSON with --json; -o writes a page. Both folders stay as they are
    #[arg(
        long,
        value_name = "OTHER",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["csv", "latency_csv", "drivers_csv", "services_csv", "edges_csv", "junit", "markdown"]
    )]
    pub beside: Option<PathBuf>,
    /// Write the HTML report to this file, and leave the folder as it is
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write what each component used and holds to this file as comma-separated values: a line for each component of
    /// each mode and load, with CPU, memory before, under and after the load, and configuration counted
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Write response times, throughput and what each mode adds to this file as comma-separated values: a line for each mode
    /// and load, every estimate with both ends of its 95 % interval
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub latency_csv: Option<PathBuf>,
    /// Write what each driver measured to this file as comma-separated values: a line per driver of each mode and load
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub drivers_csv: Option<PathBuf>,
    /// Write requests per second and CPU of each service to this file as comma-separated values: a line per service of each
    /// mode and load
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub services_csv: Option<PathBuf>,
    /// Write requests per second, response times and errors of the calls between services to this file as comma-separated
    /// values: a line per edge of each mode and load
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub edges_csv: Option<PathBuf>,
    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub automation: AutomationArgs,
}

/// Files for CI systems.
#[derive(Debug, Args)]
#[command(next_help_heading = "Automation")]
pub struct AutomationArgs {
    /// Write the outcome to this file as JUnit XML: a case per cell and part of the objective, failed trials as errors,
    /// excluded trials as skipped cases
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// Write a short summary to this file as Markdown, for a comment or "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
}
