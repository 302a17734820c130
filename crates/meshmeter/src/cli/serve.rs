//! Options of `meshmeter serve`.

use clap::Args;

/// See the command's help.
#[derive(Debug, Args)]
pub struct ServeArgs {}
