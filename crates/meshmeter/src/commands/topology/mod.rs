//! `meshmeter topology`.

mod check;
mod convert;
mod draw;
mod isotope;
mod kubernetes;
mod machine;
mod output;
mod source;

use crate::cli::{GenerateArgs, ParameterArgs, SourceArgs, TopologyArgs, TopologyCommand};
use crate::failure::Failure;
use experiment::topology::Topology;
use std::process::ExitCode;

pub fn run(args: &TopologyArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        TopologyCommand::Check(args) => check::run(args),
        TopologyCommand::Draw(args) => draw::run(args),
        TopologyCommand::Convert(args) => convert::run(args),
        TopologyCommand::Generate(args) => generate(args),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The topology named by another command's option: a file, or a shape with its defaults.
pub(super) fn named(option: &str, source: &str) -> Result<Topology, Failure> {
    if source == "-" {
        let failure = Failure::usage(format!("{option}: standard input cannot be read here"));
        return Err(failure.with_hint("name a file, or a built-in shape"));
    }
    source::read(&SourceArgs { source: source.to_owned(), parameters: ParameterArgs::default() })
}

fn generate(args: &GenerateArgs) -> Result<(), Failure> {
    let topology = source::shape(&args.name, &args.parameters)?;
    output::write(&topology.to_yaml(), args.out.as_deref())
}
