//! `meshmeter serve`.

use crate::cli::ServeArgs;
use crate::failure::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(_args: &ServeArgs) -> Result<ExitCode, Failure> {
    Err(Failure::wrong_use("not there yet"))
}
