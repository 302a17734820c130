//! Options of `meshmeter run`.

use clap::Args;

/// See the command's help.
#[derive(Debug, Args)]
pub struct RunArgs {}
