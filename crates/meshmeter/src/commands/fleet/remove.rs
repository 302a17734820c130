//! `meshmeter fleet --remove RUN-ID`: removes what an earlier run has left behind.

use super::control_plane::Api;
use super::progress::FleetReporter;
use crate::cli::FleetArgs;
use crate::failure::Failure;
use crate::output::print;
use population::remove;
use results::FleetProgress;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub fn run(args: &FleetArgs, run_id: &str) -> Result<ExitCode, Failure> {
    let never = Arc::new(AtomicBool::new(false));
    let api = Api::open(args.control_plane.kubeconfig.as_deref(), &never)?;
    let reporter = FleetReporter::new(args.progress, None);
    reporter.report(&FleetProgress::Removing);
    let removed = remove(&api.client, run_id, &|_| ());
    reporter.finish(None);
    let removed = removed?;
    let mut text = match removed.objects {
        0 => format!("There is nothing of run {run_id}.\n"),
        count => format!(
            "Removed {} of run {run_id}.\n",
            report::format::counted(count as u64, "object", "objects")
        ),
    };
    for remains in &removed.remaining {
        text.push_str(&format!("Left: {remains}.\n"));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Command line that removes a run's mesh.
pub fn command(run_id: &str, kubeconfig: Option<&Path>) -> String {
    let kubeconfig = kubeconfig.map(|path| format!(" --kubeconfig {}", path.display())).unwrap_or_default();
    format!("meshmeter fleet --remove {run_id}{kubeconfig}")
}
