//! `meshmeter lab`.

mod access_text;
mod component_text;
mod exec;
mod forward;
mod install;
mod select;
mod text;
mod up;

use crate::cli::{DownArgs, LabArgs, LabCommand, StatusArgs};
use crate::failure::Failure;
use lab::components;
use lab::registry::{self, Removed};
use serde::Serialize;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &LabArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        LabCommand::Install(args) => install::run(args),
        LabCommand::Up(args) => up::run(args),
        LabCommand::Exec(args) => exec::run(args),
        LabCommand::Forward(args) => forward::run(args),
        LabCommand::Status(args) => status(args),
        LabCommand::Down(args) => down(args),
    }
}

fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let components = || components::status(&(&args.overrides).into());
    print(&match (args.json, args.components) {
        (true, true) => json(&components()?),
        (true, false) => json(&registry::list()?),
        (false, true) => component_text::components(&components()?),
        (false, false) => text::labs(&registry::list()?) + "\n" + &component_text::components(&components()?),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn down(args: &DownArgs) -> Result<ExitCode, Failure> {
    let removed: Vec<Removed> = match (&args.id, args.all) {
        (Some(id), _) => registry::down(Some(id))?,
        (None, true) => registry::down(None)?,
        (None, false) => registry::remove_stale(),
    };
    let running = registry::list()?.len();
    print(&if args.json { json(&removed) } else { text::removed(&removed, running) })?;
    Ok(ExitCode::SUCCESS)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("what labs are is plain data") + "\n"
}

fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // Whoever read has had enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::environment(&error).about("write to standard output"))
        }
        _ => Ok(()),
    }
}
