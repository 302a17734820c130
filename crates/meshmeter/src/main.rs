//! `meshmeter`: measures what a service mesh costs.

mod build;
mod cli;
mod commands;
mod cpu;
mod failure;
mod input;
mod interrupt;
mod local_ports;
mod memory;
mod noise_floor;
mod open_files;
mod other_programs;
mod output;
mod paths;
mod progress;
mod random;
mod search;
mod studies;

use std::process::ExitCode;

fn main() -> ExitCode {
    build::declare();
    let check = |command: &_, matches: &_| paths::check(command, matches).map_err(|failure| failure.report());
    let cli = match cli::Cli::parse_or_report(check) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    match commands::run(cli.command) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}
