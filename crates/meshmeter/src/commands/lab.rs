//! `meshmeter lab`.

use crate::cli::LabArgs;
use crate::failure::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(_args: &LabArgs) -> Result<ExitCode, Failure> {
    Err(Failure::wrong_use("not there yet"))
}
