//! A supervised process in a pod, with a cgroup of its own.
//!
//! `launch.rs` starts it; this file queries and ends it.

mod launch;
mod log;
mod log_limit;

pub(crate) use launch::{Launch, start};
pub(crate) use log_limit::LogLimiter;

use crate::Result;
use crate::sandbox::cgroup::Cgroup;
use crate::sandbox::interface::Interface;
use crate::sandbox::process_end::ends_within;
use crate::sandbox::process_table;
use confinement::{Init, Joinable, View};
use experiment::environment::EnvironmentError;
use experiment::topology::Resources;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct ContainerSpec {
    /// Unique within the pod: lower-case letters, digits and dashes.
    pub name: String,
    /// A path, or a name that is looked up in PATH.
    pub program: PathBuf,
    /// Without the program's name.
    pub arguments: Vec<OsString>,
    /// The whole environment; nothing is inherited. PATH is added if absent.
    pub environment: BTreeMap<String, OsString>,
    /// Only limits take effect; requests do not reserve anything.
    pub limits: Resources,
    pub user: ContainerUser,
    /// Absent: it sees the machine's files. So do Meshmeter itself and programs that the user named.
    pub confined: Option<Confined>,
    /// Absent: the current directory of this process, or `/` if it is confined.
    pub working_directory: Option<PathBuf>,
    /// File for standard output: created with mode 0600, or appended to.
    pub output_log: PathBuf,
    /// Standard error is a pipe ([`Container::take_error_output`]). Otherwise it goes to the same log as
    /// standard output.
    pub pipe_error_output: bool,
    /// Standard input is a pipe ([`Container::take_input`]). Otherwise it is empty.
    pub pipe_input: bool,
}

impl ContainerSpec {
    /// A program of the lab's user, without arguments, environment, limits or pipes.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, output_log: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            limits: Resources::default(),
            user: ContainerUser::Lab,
            confined: None,
            working_directory: None,
            output_log: output_log.into(),
            pipe_error_output: false,
            pipe_input: false,
        }
    }
}

/// View and rights of a confined program ([`confinement`]).
#[derive(Clone, Debug, Default)]
pub struct Confined {
    pub view: View,
    /// Namespaces that it may join.
    pub joinable: Joinable,
}

/// User and capabilities of a process; other capabilities are dropped.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ContainerUser {
    #[default]
    Lab,
    /// User 65532 in a lab of root if possible. Otherwise the lab's user: an ordinary user has no other.
    Server,
    /// User 1337 if possible. Otherwise the lab's user, with `CAP_NET_ADMIN` to mark its sockets
    /// ([`crate::ProxyIdentity`]).
    Proxy,
    /// The lab's user with `CAP_NET_ADMIN` and `CAP_NET_RAW` for the pod's rules, like a pod's init
    /// container.
    NetworkSetup,
    /// [`ContainerUser::NetworkSetup`] with `CAP_SYS_ADMIN`, to open sockets in other pods, as Istio runs
    /// ztunnel.
    NodeProxy,
}

#[derive(Clone, Debug)]
pub struct Container(Arc<Process>);

#[derive(Debug)]
struct Process {
    name: String,
    pod: String,
    pid: Pid,
    /// A pidfd: it becomes readable when the process ends.
    file: OwnedFd,
    state: Mutex<State>,
    cgroup: Option<Cgroup>,
    /// OOM kills in the cgroup from processes before this one.
    oom_kills_before: u64,
    interface: Interface,
    log: PathBuf,
    /// A child process that it depends on: its name and its pidfd.
    indispensable: OnceLock<(&'static str, OwnedFd)>,
    /// The first failure found. It is never replaced: it caused the end of the trial.
    failure: OnceLock<String>,
}

#[derive(Debug)]
struct State {
    child: Child,
    /// First process of the container's PID namespace, if it is confined.
    init: Option<Init>,
    status: Option<ExitStatus>,
}

impl Container {
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// PID in the lab's `/proc`.
    pub fn pid(&self) -> u32 {
        self.0.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Absent if the lab has no cgroups ([`crate::Lab::cgroup_version`]). It stays readable until the pod is
    /// removed.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.0.cgroup.as_ref()
    }

    pub fn interface(&self) -> &Interface {
        &self.0.interface
    }

    /// The pipe of [`ContainerSpec::pipe_error_output`]. The first call takes it.
    pub fn take_error_output(&self) -> Option<ChildStderr> {
        self.state().child.stderr.take()
    }

    /// The pipe of [`ContainerSpec::pipe_input`]. The first call takes it.
    pub fn take_input(&self) -> Option<ChildStdin> {
        self.state().child.stdin.take()
    }

    pub fn has_exited(&self) -> Option<ExitStatus> {
        self.wait(Duration::ZERO)
    }

    /// Marks a child process as indispensable: when it ends, [`Self::failed`] reports a failure even if the
    /// container still runs.
    pub(crate) fn requires(&self, name: &'static str, pid: i32) -> io::Result<()> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        let file = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        self.0.indispensable.get_or_init(|| (name, file));
        Ok(())
    }

    /// Why it has failed, as a phrase to follow its name (`has died: …`, `is unresponsive: …`). It fails if it
    /// or an indispensable process has ended, if a signal has stopped one of its processes, or if it was
    /// found unresponsive ([`crate::liveness`]). The first failure found is kept.
    pub fn failed(&self) -> Option<String> {
        self.first_failure(|| self.died().or_else(|| self.stopped()))
    }

    /// Like [`Self::failed`], but takes a microsecond: it does not look for stopped processes.
    pub(crate) fn failed_or_died(&self) -> Option<String> {
        self.first_failure(|| self.died())
    }

    fn first_failure(&self, find: impl FnOnce() -> Option<String>) -> Option<String> {
        if let Some(failure) = self.0.failure.get() {
            return Some(failure.clone());
        }
        let failure = find()?;
        Some(self.0.failure.get_or_init(|| failure).clone())
    }

    pub(crate) fn was_unresponsive(&self, how: &str) {
        // A failure found earlier is more informative.
        let _ = self.failed().is_none() && self.0.failure.set(how.to_owned()).is_ok();
    }

    fn died(&self) -> Option<String> {
        let missing = self.0.indispensable.get().filter(|(_, file)| ends_within(file, Duration::ZERO));
        let missing = missing.map(|(name, _)| format!("its {name} has ended"));
        match (self.has_exited(), missing) {
            // It exited successfully because it had nothing left to do: the process that ended first is the
            // cause.
            (Some(status), Some(missing)) if status.success() => {
                Some(format!("has died: {missing}, and itself thereafter with {status}"))
            }
            (Some(status), _) if self.was_out_of_memory() => {
                Some(format!("has died: it reached its memory limit, and the kernel killed it ({status})"))
            }
            (Some(status), _) => Some(format!("has died: {status}")),
            (None, Some(missing)) => Some(format!("has died: {missing}")),
            (None, None) => None,
        }
    }

    fn was_out_of_memory(&self) -> bool {
        self.cgroup().is_some_and(|cgroup| cgroup.oom_kills() > self.0.oom_kills_before)
    }

    /// A process of the container that a signal has stopped, as a phrase to follow the container's name.
    pub(crate) fn stopped(&self) -> Option<String> {
        let proc = Path::new("/proc");
        let stopped =
            |pid: &i32| process_table::stat(proc, *pid).is_ok_and(|stat| process_table::is_stopped(&stat));
        let pid = self.processes().into_iter().find(stopped)?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some(match name.trim_end() {
            // The name of programs started through `/proc/self/exe`, which is not informative.
            "exe" | "" => "is unresponsive: it was stopped by a signal".to_owned(),
            name => format!("is unresponsive: its process {name} was stopped by a signal"),
        })
    }

    pub fn check(&self, operation: impl Into<String>) -> Result<()> {
        self.failed().map_or(Ok(()), |how| Err(self.failure(operation, &how)))
    }

    /// PIDs in the lab's `/proc`.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let grouped = self.cgroup().and_then(|cgroup| cgroup.processes().ok());
        grouped.unwrap_or_else(|| process_table::descendants(Path::new("/proc"), self.pid().cast_signed()))
    }

    pub fn wait(&self, at_most: Duration) -> Option<ExitStatus> {
        if let Some(status) = self.state().status {
            return Some(status);
        }
        // Not under the lock: others may want to signal the process meanwhile.
        if !ends_within(&self.0.file, at_most) {
            return None;
        }
        Some(self.reap(&mut self.state()))
    }

    /// Kills the rest of the process group, then takes the exit status. In this order the process group ID
    /// cannot have been reused: it is ours until the dead leader is reaped.
    fn reap(&self, state: &mut State) -> ExitStatus {
        if let Some(status) = state.status {
            return status;
        }
        // Fails only if nobody is left in the group.
        let _ = rustix::process::kill_process_group(self.0.pid, Signal::KILL);
        let status =
            state.child.wait().expect("a child of ours that has ended and was not reaped can be waited for");
        if let Some(init) = &mut state.init {
            init.end();
        }
        state.status = Some(status);
        status
    }

    /// Sends SIGTERM, and SIGKILL after `grace`, and ends its children too. Returns an error only for a
    /// process that is stuck in the kernel.
    pub fn stop(&self, grace: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM);
        if let Some(status) = self.wait(grace) {
            return Ok(status);
        }
        self.kill();
        self.wait(ENDED_TIMEOUT).ok_or_else(|| {
            EnvironmentError::new(
                format!("end {}/{}", self.0.pod, self.0.name),
                format!("process {} did not end within {} s of SIGKILL", self.pid(), ENDED_TIMEOUT.as_secs()),
            )
        })
    }

    /// Sends SIGINT: the process ends early and saves its results.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub(crate) fn kill(&self) {
        let state = self.state();
        if state.status.is_none() {
            let _ = rustix::process::kill_process_group(self.0.pid, Signal::KILL);
        }
    }

    /// Reaps members of its process group that became our children, and the first process of its PID namespace.
    /// Returns true if none is left. The process group ID is not reused while one of them exists, dead or
    /// alive.
    pub(crate) fn reap_orphans(&self) -> bool {
        let mut state = self.state();
        if state.status.is_none() {
            // It could not be ended, which was reported. Its own status must not be taken here.
            return true;
        }
        if !state.init.as_mut().is_none_or(Init::try_reap) {
            return false;
        }
        loop {
            match rustix::process::waitpgid(self.0.pid, WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Sends a signal to the process unless it has been reaped: until then its PID cannot be reused.
    fn signal(&self, signal: Signal) {
        let state = self.state();
        if state.status.is_none() {
            // Fails only if it has just ended.
            let _ = rustix::process::kill_process(self.0.pid, signal);
        }
    }

    pub(crate) fn log(&self) -> &Path {
        &self.0.log
    }

    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        log::tail(&self.0.log, lines)
    }

    pub fn ended_early(&self, operation: impl Into<String>, status: ExitStatus) -> EnvironmentError {
        self.failure(operation, &format!("ended with {status}"))
    }

    fn failure(&self, operation: impl Into<String>, how: &str) -> EnvironmentError {
        let tail = self.log_tail(3);
        let words = if tail.is_empty() { String::new() } else { format!(": {}", tail.join(" / ")) };
        EnvironmentError::new(operation, format!("{}/{} {how}{words}", self.0.pod, self.0.name))
            .with_hint(self.log_hint())
            .about_component(self.name(), self.last_lines())
    }

    pub(crate) fn log_hint(&self) -> String {
        format!("all that {} said is in {}", self.0.name, self.0.log.display())
    }

    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.log_tail(LAST_LINES)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const LAST_LINES: usize = 20;

/// Time for the kernel to reap a process after SIGKILL. It takes microseconds, longer with much memory.
pub(crate) const ENDED_TIMEOUT: Duration = Duration::from_secs(5);
