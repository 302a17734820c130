//! `meshmeter report`.

use crate::cli::ReportArgs;
use crate::failure::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(_args: &ReportArgs) -> Result<ExitCode, Failure> {
    Err(Failure::wrong_use("not there yet"))
}
