//! Options of `meshmeter lab`.

use clap::Args;

/// See the command's help.
#[derive(Debug, Args)]
pub struct LabArgs {}
