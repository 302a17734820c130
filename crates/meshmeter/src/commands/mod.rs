//! Implementation of the commands, one module per command.

mod cluster;
mod cluster_runner;
mod cluster_worker;
mod collect_spans;
mod doctor;
mod finished;
mod fleet;
mod history;
mod lab;
mod learn;
mod load;
mod man;
mod metric_labels;
mod other_labs;
mod price;
mod releases;
mod report;
mod run;
mod schema;
mod serve;
mod size;
mod topology;
mod view;

use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory as _;
use std::process::ExitCode;

/// Dispatches to the command.
pub fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Compare(args) if args.is_of_finished_runs() => finished::compare::run(&args),
        Command::Compare(args) => run::compare::run(&args),
        Command::History(args) => history::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Report(args) => report::run(&args),
        Command::View(args) => view::run(&args),
        Command::Size(args) => size::run(&args),
        Command::Price(args) => price::run(&args),
        Command::Topology(args) => topology::run(&args),
        Command::Learn(args) => learn::run(&args),
        Command::Fleet(args) => fleet::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::ClusterRunner(args) => cluster_runner::run(&args),
        Command::ClusterWorker(args) => cluster_worker::run(&args),
        Command::CollectSpans(args) => collect_spans::run(&args),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "meshmeter", &mut script);
            output::print(&String::from_utf8(script).expect("names and help are text"))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man(args) => man::run(&args),
        Command::Schema(args) => schema::run(&args),
    }
}
