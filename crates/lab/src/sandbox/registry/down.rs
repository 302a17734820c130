//! Takes labs down, in any state.

use super::record::{Record, Removed};
use super::runtime_dir::{UNFINISHED, entries, existing};
use crate::Result;
use crate::sandbox::cgroup::tree::remove_lab;
use crate::sandbox::container::ENDED_TIMEOUT;
use crate::sandbox::process_end::ends_within;
use crate::sandbox::process_table::ProcessIdentity;
use experiment::environment::EnvironmentError;
use rustix::process::{PidfdFlags, Signal};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for a lab to save its results when it is asked to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Entries younger than this may still be in the making.
const UNFINISHED_FOR: Duration = Duration::from_mins(10);

/// Takes down the lab of this name, or all of ours. Running labs are asked to end first. A failure does not
/// stop the others.
pub fn down(id: Option<&str>) -> Result<Vec<Removed>> {
    let mut removed = Vec::new();
    let mut result = Ok(());
    for directory in entries() {
        if id.is_some_and(|id| !directory.ends_with(id)) {
            continue;
        }
        let taken_down = match Record::load(&directory) {
            // It belongs to another container that shares the registry's directory; it is not one of ours.
            Ok(record) if id.is_none() && !record.is_of_our_pid_namespace() => continue,
            Ok(record) => take_down(&directory, record),
            // It was removed between listing and reading.
            Err(_) if !directory.exists() => continue,
            Err(error) => {
                Err(error.with_hint(format!("if no lab of yours is running, remove {}", directory.display())))
            }
        };
        match taken_down {
            Ok(lab) => removed.push(lab),
            Err(error) => result = Err(error),
        }
    }
    existing().iter().for_each(|labs| remove_folders_of_all(labs));
    result?;
    match id {
        Some(id) if removed.is_empty() => {
            Err(EnvironmentError::new(format!("take lab {id} down"), "there is no such lab")
                .with_hint("`meshmeter lab status` lists the labs of this user"))
        }
        _ => Ok(removed),
    }
}

pub fn remove_stale() -> Vec<Removed> {
    let labs = existing();
    labs.iter().for_each(|labs| remove_unfinished(labs));
    let take_down_if_stale = |directory: PathBuf| {
        // Entries that cannot be read or removed are left to the user: `lab status` and `lab down ID` report
        // why.
        let record = Record::load(&directory).ok()?;
        let stale = record.is_of_our_pid_namespace() && !record.outer.is_alive(Path::new("/proc"));
        if stale { take_down(&directory, record).ok() } else { None }
    };
    let removed = entries().into_iter().filter_map(take_down_if_stale).collect();
    labs.iter().for_each(|labs| remove_folders_of_all(labs));
    removed
}

fn take_down(directory: &Path, record: Record) -> Result<Removed> {
    if !record.is_of_our_pid_namespace() {
        return Err(EnvironmentError::new(
            format!("take lab {} down", record.id),
            "it was made in another container",
        )
        .with_hint("take it down there"));
    }
    let was_running = record.outer.is_alive(Path::new("/proc"));
    finish_off(&record)?;
    let cgroups = remove_entry(directory, &record.cgroup_directories)?;
    let Record { id, purpose, .. } = record;
    Ok(Removed { id, purpose, was_running, cgroups, directory: directory.to_owned() })
}

/// Ends a lab's processes. The outer process is asked first if it runs.
fn finish_off(record: &Record) -> Result<()> {
    if !end(record.outer, Signal::TERM, SHUTDOWN_TIMEOUT)? {
        end(record.outer, Signal::KILL, ENDED_TIMEOUT)?;
    }
    // The kernel kills it with the outer process. It is gone only after all other processes of the lab.
    if let Some(inner) = record.inner
        && !end(inner, Signal::KILL, ENDED_TIMEOUT)?
    {
        let stuck =
            format!("process {} did not end within {} s of SIGKILL", inner.pid, ENDED_TIMEOUT.as_secs());
        return Err(EnvironmentError::new(format!("take lab {} down", record.id), stuck));
    }
    Ok(())
}

/// Signals a process if it still runs, and waits for its end. Returns true if it is gone.
fn end(process: ProcessIdentity, signal: Signal, within: Duration) -> Result<bool> {
    let operation = || format!("end process {}", process.pid);
    let failed = |error: rustix::io::Errno| EnvironmentError::new(operation(), io::Error::from(error));
    let Some(pid) = process.raw() else { return Ok(true) };
    // A pidfd always refers to the same process. Once the start time matches, the signal cannot hit another
    // process.
    let file = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::SRCH) => return Ok(true),
        Err(error) => return Err(failed(error)),
    };
    if !process.is_there(Path::new("/proc")) {
        return Ok(true);
    }
    match rustix::process::pidfd_send_signal(&file, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(ends_within(&file, within)),
        Err(error) => Err(failed(error)),
    }
}

/// Removes a lab's cgroups, then its directory. Returns the removed cgroups. All processes must have ended.
pub(super) fn remove_entry(directory: &Path, cgroups: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for cgroup in cgroups {
        if remove_lab(cgroup)? {
            removed.push(cgroup.clone());
        }
    }
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(EnvironmentError::new(format!("remove {}", directory.display()), error))
        }
        _ => Ok(removed),
    }
}

pub(super) fn remove_folders_of_all(labs: &Path) {
    // Fails as long as they are not empty.
    if fs::remove_dir(labs).is_ok()
        && let Some(runtime) = labs.parent()
    {
        let _ = fs::remove_dir(runtime);
    }
}

/// Removes old entries that their process never finished.
fn remove_unfinished(labs: &Path) {
    for entry in fs::read_dir(labs).into_iter().flatten().flatten() {
        let unfinished = entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let age = modified.and_then(|modified| modified.elapsed().ok());
        if unfinished && age.is_some_and(|age| age > UNFINISHED_FOR) {
            // It holds at most a record, and the next start tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
