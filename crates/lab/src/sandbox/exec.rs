//! Runs commands in the pods of a running lab, from outside the lab, as `kubectl exec` does in a cluster.
//!
//! The calling process joins the namespaces of a pod: its network, its mounts (and so its name resolution),
//! and the lab's PID namespace. For an ordinary user it also joins the lab's user namespace, in which that
//! user has all rights. It must be single-threaded. Its children end with it, and with the lab.

use crate::Result;
use crate::sandbox::process_table::ProcessIdentity;
use crate::sandbox::registry::status::{PodNamespaces, PodStatus};
use components::end_with_parent;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

/// Variables with HTTP proxies of the machine's network, which no pod can reach; also used in upper case.
const PROXY_VARIABLES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

pub fn run(pod: &PodStatus, mut command: Command) -> Result<ExitStatus> {
    let program = command.get_program().to_string_lossy().into_owned();
    let operation = format!("run {program} in pod {}", pod.name);
    let failed = |error: io::Error| EnvironmentError::new(operation.clone(), error);
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD]).map_err(failed)?;
    let folder = std::env::current_dir();
    join(pod, true)?;
    // Pods see the machine's directories. If ours is not among them, the command starts in the root
    // directory.
    if let Ok(folder) = folder {
        let _ = std::env::set_current_dir(folder);
    }
    for variable in PROXY_VARIABLES {
        command.env_remove(variable).env_remove(variable.to_uppercase());
    }
    end_with_parent(&mut command);
    let mut child = command.spawn().map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        for signal in signals.wait() {
            pass_on(&child, signal);
        }
    }
}

/// Exit code as shells report it: the command's status, or 128 + the number of the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Moves the calling process, which must be single-threaded, into a pod's network. Sockets created before
/// stay in their network namespace. Returns a file that becomes readable once the lab has ended.
pub fn join_network(pod: &PodStatus) -> Result<OwnedFd> {
    join(pod, false)
}

/// Like [`join_network`]; if `whole`, children of the process also get the pod's other namespaces.
fn join(pod: &PodStatus, whole: bool) -> Result<OwnedFd> {
    let operation = format!("enter pod {}", pod.name);
    let PodNamespaces { holder, user, processes, network, mounts, .. } = &pod.namespaces;
    let open = |path: &Path| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("open {}: {error}", path.display()))
        })
    };
    let opened = || {
        let mut files: Vec<(OwnedFd, LinkNameSpaceType)> = Vec::new();
        // Must come first: it gives the right to enter the others.
        if let Some(user) = user {
            files.push((open(user)?, LinkNameSpaceType::User));
        }
        files.push((open(network)?, LinkNameSpaceType::Network));
        if whole {
            files.push((open(processes)?, LinkNameSpaceType::ProcessID));
            files.push((open(mounts)?, LinkNameSpaceType::Mount));
        }
        Ok::<_, io::Error>(files)
    };
    let files = opened();
    let process = holder.as_ref().and_then(ProcessIdentity::raw);
    let process = process.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    // Checked afterwards: the opened files belong to the lab if its first process is still alive.
    let lives = holder.is_some_and(|holder| holder.is_alive(Path::new("/proc")));
    let Some(process) = process.filter(|_| lives) else {
        return Err(EnvironmentError::new(operation, "its lab has ended"));
    };
    for (file, kind) in files.context(operation.clone())? {
        move_into_link_name_space(file.as_fd(), Some(kind)).map_err(|error| {
            EnvironmentError::new(operation.clone(), io::Error::from(error))
                .with_hint("pods are open to the user who made the lab, with the rights it was made with")
        })?;
    }
    Ok(process)
}

/// Forwards a signal unless it came from the terminal: those reach the command directly, since it is in our
/// process group.
fn pass_on(child: &Child, signal: i32) {
    let from_terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
    if signal == SIGCHLD || (from_terminal && (signal == SIGINT || signal == SIGQUIT)) {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(signal) {
        // Fails only if it has ended. It is not reaped yet, so the PID is still its own.
        let _ = rustix::process::kill_process(Pid::from_child(child), signal);
    }
}
