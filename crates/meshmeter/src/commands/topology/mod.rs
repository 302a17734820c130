//! `meshmeter topology`.

mod check;
mod convert;
mod draw;
mod isotope;
mod kubernetes;
mod machine;
mod output;
mod source;

use crate::cli::{GenerateArgs, TopologyArgs, TopologyCommand};
use crate::failure::Failure;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &TopologyArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        TopologyCommand::Check(args) => check::run(args),
        TopologyCommand::Draw(args) => draw::run(args),
        TopologyCommand::Convert(args) => convert::run(args),
        TopologyCommand::Generate(args) => generate(args),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn generate(args: &GenerateArgs) -> Result<(), Failure> {
    let topology = source::shape(&args.name, &args.parameters)?;
    output::write(&topology.to_yaml(), args.out.as_deref())
}
