//! Commands in the pods of a lab that is up, from outside of it: what `kubectl exec` is to a cluster.
//! A visitor joins the namespaces of a pod: its network, its mounts (and so its names), the lab's process numbers, and for
//! an ordinary user the lab's user namespace, in which that user may do everything. It must have one thread. What it starts
//! there goes with the visitor, and with the lab.

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

/// Name proxies of the machine's network, which no pod can reach; also known in capitals.
const PROXY_VARIABLES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

pub fn run(pod: &PodStatus, mut command: Command) -> Result<ExitStatus> {
    let program = command.get_program().to_string_lossy().into_owned();
    let operation = format!("run {program} in pod {}", pod.name);
    let failed = |error: io::Error| EnvironmentError::new(operation.clone(), error);
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD]).map_err(failed)?;
    let folder = std::env::current_dir();
    join(pod, true)?;
    // The folders of a pod are the machine's; where ours is not among them, the command starts at the root.
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

/// As shells show it: the command's status, or 128 + the number of the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Moves the calling process, which must have one thread, into a pod's network. Sockets made before stay where they
/// were made. Returns a file that becomes readable once the lab has ended.
pub fn join_network(pod: &PodStatus) -> Result<OwnedFd> {
    join(pod, false)
}

/// Like [`join_network`]; what the process starts also gets the pod's other namespaces.
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
        // First of all, since it gives the right to enter the others.
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
    // Asked afterwards: what was opened is the lab's if its first process still lives.
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

/// Signals from the terminal reach the command directly, as it is in our process group; others are sent to us alone.
fn pass_on(child: &Child, signal: i32) {
    let from_terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
    if signal == SIGCHLD || (from_terminal && (signal == SIGINT || signal == SIGQUIT)) {
        return;
    }
    if let Some(signal) = Signal::from_named_raw(signal) {
        // Refused only where it has ended; it is not reaped yet, so the number is its own.
        let _ = rustix::process::kill_process(Pid::from_child(child), signal);
    }
}
