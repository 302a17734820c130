//! Options of `meshmeter doctor`.

use clap::Args;

/// See the command's help.
#[derive(Debug, Args)]
pub struct DoctorArgs {}
