//! Options of `meshmeter report`.

use clap::Args;

/// See the command's help.
#[derive(Debug, Args)]
pub struct ReportArgs {}
