//! `meshmeter load`.

use crate::cli::LoadArgs;
use crate::failure::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(_args: &LoadArgs) -> Result<ExitCode, Failure> {
    Err(Failure::wrong_use("not there yet"))
}
