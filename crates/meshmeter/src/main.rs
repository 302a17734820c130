//! `meshmeter`: measures what a service mesh costs.

mod cli;
mod commands;
mod cpu;
mod failure;
mod interrupt;
mod memory;
mod noise_floor;
mod open_files;
mod progress;
mod search;
mod studies;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::run(cli.command) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}
