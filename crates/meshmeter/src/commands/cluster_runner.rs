//! `meshmeter cluster-runner`: runs a detached run in its pod and keeps the results until they are fetched.

use crate::cli::ClusterRunnerArgs;
use crate::failure::Failure;
use cluster::runner::{RunnerOptions, run as run_runner};
use std::process::ExitCode;

pub fn run(args: &ClusterRunnerArgs) -> Result<ExitCode, Failure> {
    let options = RunnerOptions {
        program: "/proc/self/exe".into(),
        arguments: args.arguments.clone(),
        folder: args.folder.clone(),
        keep_for: args.keep_for,
    };
    Ok(ExitCode::from(run_runner(args.port, args.ended_port, &options)?))
}
