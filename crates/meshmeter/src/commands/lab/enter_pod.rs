//! Moves this process into a pod of a running lab, from outside the lab, as `kubectl exec` does in a cluster.
//!
//! The process joins the namespaces of the pod: its network, its mounts (and so its name resolution), and the
//! lab's PID namespace. For an ordinary user it also joins the lab's user namespace, in which that user has
//! all rights. It must be single-threaded.

use experiment::environment::{EnvironmentError, ErrorContext as _};
use lab::process_table::ProcessIdentity;
use lab::registry::{PodNamespaces, PodStatus};
use rustix::fs::{Mode, OFlags};
use rustix::process::PidfdFlags;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// Moves the calling process into a pod's network. Sockets created before stay in their network namespace. If
/// `whole`, its children also get the pod's other namespaces. Returns a file that becomes readable once the
/// lab has ended.
pub fn join(pod: &PodStatus, whole: bool) -> Result<OwnedFd, EnvironmentError> {
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
