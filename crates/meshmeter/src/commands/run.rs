//! `meshmeter run`.

use crate::cli::RunArgs;
use crate::failure::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(_args: &RunArgs) -> Result<ExitCode, Failure> {
    Err(Failure::wrong_use("not there yet"))
}
