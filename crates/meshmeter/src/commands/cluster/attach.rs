//! `meshmeter cluster attach`.

use crate::cli::AttachArgs;
use crate::commands::report::{folder_failure, publish};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::tell;
use cluster::connection::Connected;
use cluster::detached::{Attached, DetachedRun, find};
use report::RunData;
use report::folder::{Existing, RunFolder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Exit status after Ctrl-C: 128 + SIGINT, as shells use it.
const DETACHED_AGAIN: u8 = 130;

pub(super) fn run(args: &AttachArgs) -> Result<ExitCode, Failure> {
    let stop = interrupt::on_signals()?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    let cluster = args.connection.connection().open()?;
    let place = choose(&cluster, args)?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("runs").join(&place.run));
    check_free(&out, args.overwrite)?;
    let attached = Attached::open(&cluster, &place, &is_stopped)?;
    let run = attached.place().run.clone();
    if args.stop {
        attached.interrupt()?;
        tell!("run {run} ends with the results so far");
    } else {
        tell!("attached to run {run}; Ctrl-C detaches, and the run goes on");
    }
    let mut read = 0;
    let status = loop {
        let progress = attached.progress(read, &is_stopped)?;
        read += progress.lines.len();
        progress.lines.iter().for_each(|line| tell!("{line}"));
        if let Some(status) = progress.ended {
            break status;
        }
        if is_stopped() {
            tell!("detached; the run goes on: meshmeter cluster attach {run} (with --stop, it ends)");
            return Ok(ExitCode::from(DETACHED_AGAIN));
        }
    };
    let has_run = copy(&attached, &out, args.overwrite)?;
    // The results are in place, whatever the report says.
    attached.fetched()?;
    if has_run {
        match RunData::read(&out) {
            Ok(run) => publish(&run, &out, args.json, &args.automation)?,
            // The run has already printed why it ended so early.
            Err(error) => drop(folder_failure(error).report()),
        }
    } else {
        tell!("the run ended before it had a folder");
    }
    Ok(ExitCode::from(status))
}

/// The named run, or the only one there is.
fn choose(cluster: &Connected, args: &AttachArgs) -> Result<DetachedRun, Failure> {
    let mut found = find(cluster, &args.namespace, args.run.as_deref())?;
    found.retain(|place| args.run.is_some() || !place.is_over);
    match (found.len(), &args.run) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(run)) => Err(Failure::usage(format!("no detached run {run} is in this cluster"))
            .with_hint("`meshmeter cluster clean` lists what runs have left")),
        (0, None) => Err(Failure::usage("no detached run is in this cluster")),
        _ => {
            let runs: Vec<&str> = found.iter().map(|place| place.run.as_str()).collect();
            Err(Failure::usage("several detached runs are in this cluster")
                .with_hint(format!("name one of {}", runs.join(", "))))
        }
    }
}

/// Checked before anything is requested from the run: otherwise an existing directory would only be noticed
/// hours later.
fn check_free(out: &Path, overwrite: bool) -> Result<(), Failure> {
    let is_empty = fs::read_dir(out).map_or(true, |mut entries| entries.next().is_none());
    if is_empty || overwrite {
        return Ok(());
    }
    Err(Failure::usage(format!("{} is not empty", out.display()))
        .with_hint("name another with --out, or replace an earlier run with --overwrite"))
}

/// Copies the run directory out of the cluster and renames it into place once it is complete. Returns false
/// if the run had no directory.
fn copy(attached: &Attached<'_>, out: &Path, overwrite: bool) -> Result<bool, Failure> {
    let failed = |error: std::io::Error| {
        Failure::environment(&error).about(&format!("copy the run folder to {}", out.display()))
    };
    let partial = beside(out);
    // Left by an attempt that was killed.
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial).map_err(failed)?;
    let has_run = attached.copy_folder(&partial)?;
    if !has_run {
        fs::remove_dir(&partial).map_err(failed)?;
        return Ok(false);
    }
    let existing = if overwrite { Existing::Replace } else { Existing::Keep };
    // Removes an earlier run, and nothing else.
    drop(RunFolder::create(out, existing).map_err(folder_failure)?);
    fs::remove_dir_all(out).and_then(|()| fs::rename(&partial, out)).map_err(failed)?;
    Ok(true)
}

/// A directory on the same file system.
fn beside(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    out.with_file_name(name)
}
