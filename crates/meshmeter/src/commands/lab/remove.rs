//! `meshmeter lab remove`.

use super::install::Progress;
use crate::cli::RemoveArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{json, print};
use components::remove_release;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Output of `--json` per release.
#[derive(Serialize)]
struct RemovedRelease<'a> {
    version: &'a str,
    path: PathBuf,
}

pub fn run(args: &RemoveArgs) -> Result<ExitCode, Failure> {
    let mut progress = Progress::new(interrupt::on_patient_signals()?);
    let mut removed = Vec::new();
    for version in &args.versions {
        let path = remove_release(version, &mut progress)?;
        removed.push(RemovedRelease { version: version.as_str(), path });
    }
    print(&if args.json { json(&removed) } else { text(&removed) })?;
    Ok(ExitCode::SUCCESS)
}

fn text(removed: &[RemovedRelease<'_>]) -> String {
    let mut text = String::new();
    for RemovedRelease { version, path } in removed {
        let _ = writeln!(text, "istio {version} removed: {}", path.display());
    }
    text
}
