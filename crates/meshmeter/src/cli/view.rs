//! Options of `meshmeter view`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Show runs in a browser on this machine, and a run in progress as its trials end
///
/// Prints an address with a secret in it, and serves until Ctrl-C: runs, comparisons and histories below a directory, with their
/// reports. A run in progress is shown trial by trial and second by second; it never waits for its viewers. Only this machine can
/// connect, and only files of runs are served (docs/view.md).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meshmeter view
  meshmeter view runs/sidecar-cost-20261120-100000 --port 8090")]
pub struct ViewArgs {
    /// Directory with runs, or of a run
    #[arg(value_name = "DIR", default_value = "runs", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Port on 127.0.0.1; by default a free one
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
}
