//! Options of `meshmeter load`.

use clap::Args;

/// See the command's help.
#[derive(Debug, Args)]
pub struct LoadArgs {}
