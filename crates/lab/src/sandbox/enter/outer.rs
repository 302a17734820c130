//! The outer process: see [`super`].

use super::exit_code;
use super::inner::{ARMED_FILE, INSIDE_VARIABLE};
use crate::Result;
use crate::end_signals;
use crate::sandbox::inotify;
use crate::sandbox::permission::refused;
use crate::sandbox::privileges::Privileges;
use crate::sandbox::process_end::ends_within;
use crate::sandbox::process_table::ProcessIdentity;
use crate::sandbox::registry::down::remove_stale;
use crate::sandbox::registry::registration::Registration;
use crate::sandbox::registry::runtime_dir::DirAccess;
use crate::sandbox::registry::status;
use crate::sandbox::subordinate::{Mapping, NoProxyUser};
use components::end_with_parent;
use confinement::unshare;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use mesh::wait::wait_for;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use rustix::thread::UnshareFlags;
use signal_hook::consts::{SIGCHLD, SIGQUIT};
use signal_hook::iterator::Signals;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

/// The inner process handles signals some milliseconds after its start; loading the program from a cold disk
/// takes longer.
const ARMED_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for the inner process to end when it is asked to a second time.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Signals that are forwarded to the inner process. It has its own process group, so that each signal reaches
/// it exactly once. Ctrl-C, which the terminal sends to our group, and `kill -INT`, which may be sent to us
/// or to our group, look the same to it.
fn passed_on() -> Vec<i32> {
    [end_signals(), vec![SIGQUIT]].concat()
}

pub(super) fn enter(purpose: &str) -> Result<ExitCode> {
    // Must come first, so that no signal with its default action can hit us with half a lab.
    let mut signals = Signals::new(passed_on().iter().chain([&SIGCHLD])).context("handle signals")?;
    let inotify_limit = inotify::limit();
    remove_stale();
    let privileges = Privileges::available();
    let mapping = (privileges == Privileges::UserNamespace).then(Mapping::prepare);
    let access = if let Some(Err(_)) = mapping { DirAccess::User } else { DirAccess::Proxies };
    let mut registration = Registration::new(purpose, privileges, access)?;
    if let Err(reason) = make_namespaces(mapping)? {
        registration.note(|record| record.no_proxy_user = Some(reason))?;
    }
    let mut child = start_inner(registration.directory())?;
    let result = note_inner(&mut registration, &child)
        .and_then(|()| supervise(&mut signals, &mut child, registration.directory()));
    // If we fail, it must not carry on. If it has ended, this call fails.
    let _ = child.kill();
    let _ = child.wait();
    let removed = registration.remove();
    let other_labs = status::list().map_or(true, |labs| labs.iter().any(|lab| lab.running));
    inotify::restore(inotify_limit, other_labs);
    let status = result?;
    removed.map(|()| status)
}

fn note_inner(registration: &mut Registration, child: &Child) -> Result<()> {
    // It may have ended already with an error of its own, which is more informative than ours.
    let Ok(identity) =
        ProcessIdentity::read(Path::new("/proc"), Pid::from_child(child).as_raw_nonzero().get())
    else {
        return Ok(());
    };
    registration.note(|record| record.inner = Some(identity))
}

/// Creates the namespaces for the inner process. The inner result says why an ordinary user's lab has no user
/// for proxies. `mapping` is absent for root, which has every user. The PID namespace applies to our children
/// only.
fn make_namespaces(mapping: Option<Result<Mapping, NoProxyUser>>) -> Result<Result<(), NoProxyUser>> {
    let failed = |error| refused("make namespaces for a lab", error);
    let Some(mapping) = mapping else {
        return unshare(UnshareFlags::NEWPID).map(Ok).map_err(failed);
    };
    // IDs as seen from outside the new user namespace.
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID).map_err(failed)?;
    let written = mapping.and_then(Mapping::write);
    if written.is_ok() {
        return Ok(written);
    }
    // A user may map only one user (user_namespaces(7)), and groups only after giving up setgroups(2).
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {} 1", user.as_raw())),
        ("/proc/self/gid_map", format!("0 {} 1", group.as_raw())),
    ];
    for (file, map) in maps {
        let is_mapped = fs::read_to_string(file).is_ok_and(|map| map.split_ascii_whitespace().count() > 1);
        // A map can be written only once.
        if !is_mapped {
            fs::write(file, map).map_err(failed)?;
        }
    }
    Ok(written)
}

fn start_inner(directory: &Path) -> Result<Child> {
    let mut arguments = std::env::args_os();
    // The same file that we run from, even if another has since replaced it at its path.
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(INSIDE_VARIABLE, directory).process_group(0);
    end_with_parent(&mut command);
    command.spawn().map_err(|error| refused("start the lab's first process", error))
}

fn supervise(signals: &mut Signals, child: &mut Child, directory: &Path) -> Result<ExitCode> {
    let mut asked_to_end = 0;
    let end = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).context("wait for the lab")?;
    loop {
        if let Some(status) = child.try_wait().context("wait for the lab")? {
            if status.code().is_some() || asked_to_end > 0 {
                return Ok(ExitCode::from(exit_code(status)));
            }
            let killed = format!("the lab's first process was killed ({status})");
            return Err(EnvironmentError::new("run in the lab", killed));
        }
        for signal in signals.wait() {
            if signal == SIGCHLD {
                continue;
            }
            asked_to_end += 1;
            wait_until_armed(child, directory)?;
            pass_on(child, signal);
            if asked_to_end > 1 && !ends_within(&end, AT_ONCE) {
                // It is stopped or stuck.
                pass_on(child, SIGQUIT);
            }
        }
    }
}

fn wait_until_armed(child: &mut Child, directory: &Path) -> Result<()> {
    wait_for("the lab's first process handles signals", ARMED_TIMEOUT, || {
        let ended = child.try_wait().context("wait for the lab")?;
        // Its directory may have been removed meanwhile.
        let is_armed = directory.join(ARMED_FILE).exists() || !directory.exists();
        Ok((ended.is_some() || is_armed).then_some(()))
    })
}

fn pass_on(child: &Child, signal: i32) {
    // As PID 1 of its namespace it ignores signals without a handler, and SIGQUIT must end it at once.
    let signal = if signal == SIGQUIT { Some(Signal::KILL) } else { Signal::from_named_raw(signal) };
    if let Some(signal) = signal {
        // Fails only if it has ended. It is not reaped yet, so the PID is still its own.
        let _ = rustix::process::kill_process(Pid::from_child(child), signal);
    }
}
