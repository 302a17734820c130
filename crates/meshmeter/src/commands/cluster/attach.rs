//! `meshmeter cluster attach`.

mod partial;

use self::partial::PartialCopy;
use crate::cli::AttachArgs;
use crate::commands::report::{folder_failure, publish};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::tell;
use cluster::connection::Connected;
use cluster::detached::{Attached, DetachedRun, FolderNames, find};
use report::RunData;
use report::folder::{Existing, LOGS_FOLDER, RUN_FILES, RunFolder};
use std::path::Path;
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
    let existing = if args.overwrite { Existing::Replace } else { Existing::Keep };
    // Before anything is requested from the run: otherwise it would only be noticed hours later.
    RunFolder::check(&out, existing).map_err(folder_failure)?;
    let partial = PartialCopy::begin(&out)?;
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
        read = progress.next;
        progress.lines.iter().for_each(|line| tell!("{line}"));
        if let Some(status) = progress.ended {
            break status;
        }
        if is_stopped() {
            tell!("detached; the run goes on: meshmeter cluster attach {run} (with --stop, it ends)");
            return Ok(ExitCode::from(DETACHED_AGAIN));
        }
    };
    let has_run = copy(&attached, &partial, (&out, existing), &is_stopped)?;
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

/// Copies the run directory out of the cluster and moves its files into place once it is complete. Returns false
/// if the run had no directory.
fn copy(
    attached: &Attached<'_>,
    partial: &PartialCopy,
    (out, existing): (&Path, Existing),
    is_stopped: &dyn Fn() -> bool,
) -> Result<bool, Failure> {
    let names = FolderNames { files: &RUN_FILES, folders: &[LOGS_FOLDER] };
    for path in attached.copy_folder(partial.path(), names, is_stopped)? {
        tell!("left out {}, which no run writes", path.display());
    }
    partial.move_to(out, existing)
}
