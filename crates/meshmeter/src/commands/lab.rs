//! `meshmeter lab`.

mod access_text;
mod component_text;
mod enter_pod;
mod exec;
mod forward;
mod install;
mod opened;
mod remove;
mod select;
mod text;
mod up;

use crate::cli::{DownArgs, LabArgs, LabCommand, StatusArgs};
use crate::failure::Failure;
use crate::output::{json, print};
use lab::registry::{self, Removed};
use std::process::ExitCode;

pub fn run(args: &LabArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        LabCommand::Install(args) => install::run(args),
        LabCommand::Remove(args) => remove::run(args),
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
