//! The inner process: see [`super`].

use crate::Result;
use crate::sandbox::lab::Lab;
use crate::sandbox::permission::refused;
use crate::sandbox::registry::record::Record;
use confinement::unshare;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Passes the lab's registry entry to the inner process.
pub(super) const INSIDE_VARIABLE: &str = "MESHMETER_LAB_INSIDE";

/// The inner process creates this file once it handles signals. Until then it would ignore them, as PID 1 of
/// a namespace does.
pub(super) const ARMED_FILE: &str = "armed";

pub(super) fn enter(private_dir: PathBuf, on_machine: impl FnOnce()) -> Result<Lab> {
    let operation = "enter the lab";
    if rustix::process::getpid().as_raw_nonzero().get() != 1 {
        return Err(EnvironmentError::new(
            operation,
            format!("{INSIDE_VARIABLE} is set, but this is not a lab"),
        )
        .with_hint(format!("unset {INSIDE_VARIABLE}: Meshmeter sets it for itself")));
    }
    show_as_started();
    keep_files_to_ourselves().context(operation)?;
    let stop_requested = handle_signals().context(operation)?;
    fs::write(private_dir.join(ARMED_FILE), []).context(operation)?;
    let record = Record::load(&private_dir)?;
    // The kernel kills us when the outer process ends, but not if it ended before we requested that.
    if !record.outer.is_alive(Path::new("/proc")) {
        return Err(EnvironmentError::new(operation, "the process that made the lab has ended"));
    }
    let host_proc_file = open_proc().context(operation)?;
    // Must come before we leave the machine's network: a socket stays in the network namespace in which it
    // was created, and the next call moves only this thread.
    on_machine();
    unshare(UnshareFlags::NEWNS | UnshareFlags::NEWNET)
        .map_err(|error| refused("make the lab's network and mount namespaces", error))?;
    mount_proc()?;
    Lab::open(record, private_dir, host_proc_file, stop_requested)
}

/// Sets our process name. Programs started through `/proc/self/exe` show as `exe` in process lists.
fn show_as_started() {
    let name = std::env::args_os().next().map(PathBuf::from);
    let name = name.as_deref().and_then(Path::file_name).unwrap_or_default();
    if let Ok(name) = CString::new(name.as_encoded_bytes()) {
        // The kernel truncates it to 15 bytes. A failure only affects how it looks.
        let _ = rustix::thread::set_name(&name);
    }
}

/// Sets close-on-exec on files that our parent left open (a shell's, a build tool's), except for the standard
/// three. Otherwise the lab's processes would keep others' pipes open.
#[allow(unsafe_code)]
fn keep_files_to_ourselves() -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()) else {
            continue;
        };
        if number <= 2 {
            continue;
        }
        // SAFETY: the number was just listed as open, and we are the only thread, so nobody closes it meanwhile. The
        // listing's own file is among them, is open until the loop ends, and has the flag already.
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_setfd(file, FdFlags::CLOEXEC)?;
    }
    Ok(())
}

/// The first signal is recorded, so that the command ends cleanly. The second ends this process at once, and
/// the lab with it.
fn handle_signals() -> io::Result<Arc<AtomicBool>> {
    let stop_requested = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Registered in this order, the flag is still unset when the first signal arrives.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop_requested))?;
        signal_hook::flag::register(signal, Arc::clone(&stop_requested))?;
    }
    Ok(stop_requested)
}

fn open_proc() -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/proc", flags, Mode::empty())?)
}

fn mount_proc() -> Result<()> {
    let operation = "mount the lab's /proc";
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(|error| refused(operation, error.into()))?;
    // Shared within the lab: pods with their own mount namespace see what is mounted for them later.
    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", shared).map_err(|error| refused(operation, error.into()))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "/proc", "proc", flags, None).map_err(|error| {
        EnvironmentError::new(operation, io::Error::from(error)).with_hint(
            "the kernel refuses it to a user namespace where parts of /proc are masked, as in most containers: start the \
             container with `--security-opt systempaths=unconfined` (Podman: `--security-opt unmask=ALL`), or as root",
        )
    })
}
