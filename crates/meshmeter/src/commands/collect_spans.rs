//! `meshmeter collect-spans`: counts the spans that proxies send, until it is stopped. Labs run it when an
//! experiment traces.

use crate::cli::CollectSpansArgs;
use crate::failure::Failure;
use std::net::TcpListener;
use std::process::ExitCode;

pub fn run(args: &CollectSpansArgs) -> Result<ExitCode, Failure> {
    let listener = TcpListener::bind(args.listen).map_err(|error| Failure::environment(&error))?;
    mesh::spans::collect(listener).map_err(|error| Failure::environment(&error))?;
    Ok(ExitCode::SUCCESS)
}
