//! `meshmeter doctor`.

use crate::cli::DoctorArgs;
use crate::failure::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(_args: &DoctorArgs) -> Result<ExitCode, Failure> {
    Err(Failure::wrong_use("not there yet"))
}
