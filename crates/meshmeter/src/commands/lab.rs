//! `meshmeter lab`.

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
        LabCommand::Install => install(),
        LabCommand::Up(args) => up::run(args),
        LabCommand::Status(args) => status(args),
        LabCommand::Down(args) => down(args),
    }
}

fn install() -> Result<ExitCode, Failure> {
    let installation = components::install(&mut |step| {
        // Nobody may be listening, which is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{step}");
    })?;
    let there = if installation.already_there { " (was there)" } else { "" };
    print(&format!("envoy {}{there}: {}\n", installation.version, installation.envoy.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let labs = registry::list()?;
    print(&if args.json { json(&labs) } else { text::labs(&labs) })?;
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
