//! Options of `meshmeter doctor`.

use clap::Args;
use std::path::PathBuf;

/// See the command's help.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,

    /// The Envoy to look at instead of the installed one
    #[arg(long, value_name = "PATH")]
    pub envoy: Option<PathBuf>,

    /// Look at a lab alone, from within: what the doctor starts as its child
    #[arg(long, hide = true)]
    pub within_lab: bool,
}
