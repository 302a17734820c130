//! Options of `meshmeter report`.

use super::NoiseArgs;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Rebuilds report.html and summary.json from the trials that a run recorded, and prints the result. Of a comparison it rebuilds
/// comparison.html, and ends with the exit status of its verdict.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directory of the run, or of a comparison
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Compare with this run of the same experiment, made elsewhere: figures side by side, and what differs
    /// between the two environments. Prints text, or JSON with --json; -o writes a page. Both directories
    /// stay unchanged
    #[arg(
        long,
        value_name = "OTHER",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["csv", "latency_csv", "drivers_csv", "services_csv", "edges_csv", "junit", "markdown",
            "accept_noise"]
    )]
    pub beside: Option<PathBuf>,
    /// Write the HTML report to this file, and leave the directory unchanged
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write usage and footprint of each component to this file as comma-separated values: a line per
    /// component, mode and load, with CPU, memory before, under and after the load, and configuration counts
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Write response times, throughput and added latency to this file as comma-separated values: a line per
    /// mode and load, every estimate with both ends of its 95 % confidence interval
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub latency_csv: Option<PathBuf>,
    /// Write the results of drivers to this file as comma-separated values: a line per driver, mode and load
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub drivers_csv: Option<PathBuf>,
    /// Write requests per second and CPU of services to this file as comma-separated values: a line per
    /// service, mode and load
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub services_csv: Option<PathBuf>,
    /// Write requests per second, response times and errors of calls between services to this file as
    /// comma-separated values: a line per edge, mode and load
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub edges_csv: Option<PathBuf>,
    /// Exit with status 5 if a figure of the comparison is inconclusive
    #[arg(long)]
    pub strict: bool,

    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub noise: NoiseArgs,

    #[command(flatten)]
    pub automation: AutomationArgs,
}

/// Options for CI systems.
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
