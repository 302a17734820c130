//! Where the result of a load goes, and in which form.

use clap::Args;
use std::path::PathBuf;

/// Outputs of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    #[command(flatten)]
    pub files: ResultFileArgs,

    /// Keep the histogram of each second in the JSON too, about 1 KB each: `load merge` then merges the seconds exactly
    #[arg(long, requires = "json")]
    pub series_histograms: bool,
}

/// Files of a result, measured or merged. Each may be `-`, standard output, but only one of them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ResultFileArgs {
    /// Write the result as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,

    /// Write a line for each second as comma-separated values, as they go
    #[arg(long, value_name = "FILE|-")]
    pub csv: Option<PathBuf>,

    /// Write an HdrHistogram interval log (in nanoseconds) as it goes: response times of each second and, with tags,
    /// service times and schedule lags
    #[arg(long, value_name = "FILE|-")]
    pub hdr: Option<PathBuf>,

    /// Write the percentiles of the response time (in milliseconds) as the HdrHistogram plotter reads them
    #[arg(long, value_name = "FILE|-")]
    pub percentiles: Option<PathBuf>,

    /// Write the result as fortio does (its `-json`), with response times, not service times, as DurationHistogram
    #[arg(long, value_name = "FILE|-")]
    pub fortio: Option<PathBuf>,

    /// The Labels in the fortio JSON, for scripts that read them
    #[arg(long, value_name = "TEXT", requires = "fortio")]
    pub fortio_labels: Option<String>,
}
