//! From a specification to a running process. The pod's thread forks, so the child starts in the pod's
//! network namespace. Before exec the child joins its cgroup, so that all its usage is counted and limited.
//! It then drops its privileges, and has itself killed if the pod's thread ends.

use super::{Container, ContainerSpec, ContainerUser, Process, State};
use crate::Result;
use crate::sandbox::cgroup::Cgroup;
use crate::sandbox::namespace::Namespace;
use crate::sandbox::search_path::search_path;
use confinement::{Confinement, Rights, in_child, spawn_in_pid_namespace};
use experiment::environment::EnvironmentError;
use rustix::fs::Mode;
use rustix::process::{Gid, Pid, PidfdFlags, Resource, Rlimit, Signal};
use rustix::thread::CapabilitySet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

pub(crate) struct Launch<'a> {
    pub(crate) pod: &'a str,
    pub(crate) namespace: &'a Namespace,
    pub(crate) cgroup: Option<Cgroup>,
    /// User and group to switch to; absent if they stay the same.
    pub(crate) user: Option<u32>,
    /// Path that the process's user can reach.
    pub(crate) program: PathBuf,
}

pub(crate) fn start(launch: Launch<'_>, spec: &ContainerSpec) -> Result<Container> {
    let operation = format!("start {}/{} ({})", launch.pod, spec.name, spec.program.display());
    let failed = |error: io::Error| EnvironmentError::new(operation.clone(), error);
    let rights = Rights { user: launch.user, keep: kept_capabilities(spec.user, launch.user.is_some()) };
    let mut command = command(&launch.program, spec, &rights).map_err(failed)?;
    let confinement = confinement(spec).map_err(failed)?;
    let membership_files =
        launch.cgroup.as_ref().map(Cgroup::membership_files).transpose().map_err(failed)?.unwrap_or_default();
    let in_child_too = confinement.clone();
    in_child(&mut command, move || become_container(&membership_files, in_child_too.as_deref(), &rights));
    let oom_kills_before = launch.cgroup.as_ref().map_or(0, Cgroup::oom_kills);
    let is_confined = confinement.is_some();
    let spawn = move || match is_confined {
        true => spawn_in_pid_namespace(&mut command).map(|(child, init)| (child, Some(init))),
        false => command.spawn().map(|child| (child, None)),
    };
    let (mut child, init) = launch.namespace.run(spawn)?.map_err(|error| {
        failed(match &confinement {
            Some(confinement) => confinement.explain(error),
            None => error,
        })
    })?;
    let pid = Pid::from_child(&child);
    let file = rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(|error| {
        // Both fail only if it has ended by itself.
        let _ = child.kill();
        let _ = child.wait();
        failed(error.into())
    })?;
    Ok(Container(Arc::new(Process {
        name: spec.name.clone(),
        pod: launch.pod.to_owned(),
        pid,
        file,
        state: Mutex::new(State { child, init, status: None }),
        cgroup: launch.cgroup,
        oom_kills_before,
        interface: launch.namespace.interface().clone(),
        log: spec.output_log.clone(),
        indispensable: OnceLock::new(),
        failure: OnceLock::new(),
    })))
}

fn command(program: &Path, spec: &ContainerSpec, rights: &Rights) -> io::Result<Command> {
    let mut command = Command::new(program);
    // Istio's programs look up iptables in PATH.
    command.args(&spec.arguments).env_clear().env("PATH", search_path()).envs(&spec.environment);
    // A process group of its own: Ctrl-C on the terminal reaches only Meshmeter, which then decides.
    command.process_group(0);
    command.stdin(if spec.pipe_input { Stdio::piped() } else { Stdio::null() });
    // A confined process changes it when it has its own file system.
    if let (Some(directory), None) = (&spec.working_directory, &spec.confined) {
        command.current_dir(directory);
    }
    let output = log_file(&spec.output_log, rights)?;
    command.stderr(if spec.pipe_error_output { Stdio::piped() } else { output.try_clone()?.into() });
    command.stdout(output);
    Ok(command)
}

/// Opens a log for appending. The group may write to it: proxies of another user open it as `/dev/stdout` for
/// access logs.
fn log_file(path: &Path, rights: &Rights) -> io::Result<File> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("log file {}: {error}", path.display()));
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(named)?;
    if let Some(user) = rights.user {
        rustix::fs::fchown(&file, None, Some(Gid::from_raw(user)))
            .and_then(|()| rustix::fs::fchmod(&file, Mode::from_raw_mode(0o660)))
            .map_err(|error| named(error.into()))?;
    }
    Ok(file)
}

/// Capabilities that a container keeps.
fn kept_capabilities(user: ContainerUser, has_own_user: bool) -> CapabilitySet {
    let network_setup = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    match user {
        ContainerUser::Lab | ContainerUser::Server => CapabilitySet::empty(),
        ContainerUser::Proxy if has_own_user => CapabilitySet::empty(),
        ContainerUser::Proxy => CapabilitySet::NET_ADMIN,
        ContainerUser::NetworkSetup => network_setup,
        ContainerUser::NodeProxy => network_setup | CapabilitySet::SYS_ADMIN,
    }
}

fn confinement(spec: &ContainerSpec) -> io::Result<Option<Arc<Confinement>>> {
    let Some(confined) = &spec.confined else { return Ok(None) };
    let directory = spec.working_directory.as_deref().unwrap_or(Path::new("/"));
    Ok(Some(Arc::new(Confinement::new(&confined.view, directory, confined.joinable)?)))
}

/// Runs in the child between fork and exec, so it only makes system calls.
fn become_container(
    membership_files: &[File],
    confinement: Option<&Confinement>,
    rights: &Rights,
) -> io::Result<()> {
    for mut file in membership_files {
        file.write_all(b"0")?;
    }
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    confinement.map_or(Ok(()), Confinement::enter)?;
    rights.apply()?;
    // Must come after a change of the user, which clears it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    confinement.map_or(Ok(()), Confinement::filter_system_calls)
}
