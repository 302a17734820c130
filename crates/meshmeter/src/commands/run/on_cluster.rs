//! A run on a Kubernetes cluster: the only file of a run that knows clusters.

use crate::cli::RunArgs;
use crate::commands::cluster::documents;
use crate::failure::{ENVIRONMENT_FAILED, Failure};
use cluster::{objects, plug};
use experiment::{Mode, Plan};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Stands for the image where objects are only printed.
const ANY_IMAGE: &str = "meshmeter";
/// A label holds 63 characters, 15 of which are the time.
const MAX_LABELLED_NAME: usize = 40;

/// Runs on a cluster.
pub(super) fn run(args: &RunArgs, plan: &Plan) -> Result<ExitCode, Failure> {
    if args.dry_run {
        return print_objects(args, plan);
    }
    Err(Failure::wrong_use("trials do not run on clusters yet")
        .with_hint("--dry-run prints the objects that they need"))
}

/// Prints every object of the first deployment of each mode. Modes that no cluster runs are named.
fn print_objects(args: &RunArgs, plan: &Plan) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    let (mut modes, mut refused): (Vec<Mode>, Vec<Failure>) = Default::default();
    let settings = args.cluster.settings(&run_identifier(&plan.name), ANY_IMAGE);
    for trial in &plan.trials {
        if modes.contains(&trial.mode) {
            continue;
        }
        modes.push(trial.mode);
        let written = plug::of(trial.spec.mesh, trial.mode, &settings)
            .and_then(|plug| objects::objects(&trial.spec, &settings, &*plug));
        match written {
            Ok(written) => {
                let _ = writeln!(text, "# Mode {}: {} objects", trial.mode, written.len());
                text.push_str(&documents(&written));
            }
            Err(error) => refused.push(error.into()),
        }
    }
    for failure in &refused {
        failure.report();
    }
    // Whoever reads may stop early.
    let _ = anstream::stdout().write_all(text.as_bytes());
    Ok(if text.is_empty() { ExitCode::from(ENVIRONMENT_FAILED) } else { ExitCode::SUCCESS })
}

/// Value of the run's label: the experiment's name as far as a label may hold it, and the time in UTC to the second.
fn run_identifier(name: &str) -> String {
    let name = name.to_lowercase().replace(|other: char| !other.is_ascii_alphanumeric(), "-");
    let name: String = name.trim_matches('-').chars().take(MAX_LABELLED_NAME).collect();
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    format!("{}-{time}", if name.is_empty() { "run" } else { &name })
}
