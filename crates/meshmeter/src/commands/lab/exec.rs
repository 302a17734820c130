//! `meshmeter lab exec`: runs a command in a pod of a lab that is up.

use super::select;
use crate::cli::ExecArgs;
use crate::failure::Failure;
use lab::exec;
use std::process::{Command, ExitCode};

pub fn run(args: &ExecArgs) -> Result<ExitCode, Failure> {
    let pod = select::pod(&args.pod)?;
    let (program, arguments) = args.command.split_first().expect("clap asks for a command");
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(ExitCode::from(exec::exit_code(exec::run(&pod, command)?)))
}
