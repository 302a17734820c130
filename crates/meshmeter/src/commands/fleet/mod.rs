//! `meshmeter fleet`: simulated proxies against an istiod.
//!
//! Read `runner.rs` first: the run, from checking the API to removing the mesh. `settings.rs` interprets the
//! options, `control_plane.rs` finds what the fleet connects to, `changes.rs` and `churn.rs` make changes,
//! `metrics.rs` reads istiod's own metrics and `control_plane_metrics.rs` adds them up, `phases.rs` splits the
//! time under changes into phases, `identities.rs` has the proxies, `asks.rs` communicates with the environment,
//! `links.rs` cuts proxies off, `live.rs` sends metrics, `conclude.rs` builds the result.

mod asks;
mod changes;
mod churn;
mod conclude;
mod control_plane;
mod control_plane_metrics;
mod identities;
mod in_lab;
mod links;
mod live;
mod metrics;
mod phases;
mod progress;
mod remove;
mod run_id;
mod runner;
mod settings;
mod state;
mod update_times;
mod witnesses;

use crate::cli::FleetArgs;
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::open_files;
use crate::output;
use crate::output::destination::{self, Destination};
use results::FleetResult;
use settings::ControlPlane;
use std::process::ExitCode;

/// Open files of a fleet beside its connections.
const OTHER_FILES: u64 = 512;

pub fn run(args: &FleetArgs) -> Result<ExitCode, Failure> {
    if let Some(run_id) = &args.mesh.remove {
        return remove::run(args, run_id);
    }
    destination::check(&outputs(args))?;
    let settings = settings::settings(args)?;
    match settings::control_plane(args)? {
        ControlPlane::Lab(istiods) => in_lab::run(args, &settings, &istiods),
        ControlPlane::Elsewhere(addresses) => {
            let copies = if args.control_plane.spread == fleet::Spread::Each { addresses.len() } else { 1 };
            open_files::allow(settings.proxies * copies, OTHER_FILES)?;
            runner::run(args, &settings, &addresses)
        }
    }
}

fn outputs(args: &FleetArgs) -> Vec<destination::Output> {
    destination::of_options([("--json", &args.json)])
}

/// Writes the JSON if requested.
fn write_json(args: &FleetArgs, result: &FleetResult) -> Result<(), Failure> {
    let Some(path) = &args.json else { return Ok(()) };
    Destination::from_path(path).write(output::json(result).as_bytes())
}

/// Prints a result and returns the exit status.
fn show(args: &FleetArgs, result: &FleetResult) -> Result<ExitCode, Failure> {
    if destination::stdout_is_free(&outputs(args)) {
        let text = report::terminal::fleet_text(result, super::report::terminal_options());
        output::print(&text)?;
    }
    Ok(if result.verdict.valid { ExitCode::SUCCESS } else { ExitCode::from(MEASUREMENT_FAILED) })
}
