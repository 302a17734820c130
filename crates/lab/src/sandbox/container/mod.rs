//! A supervised process in a pod, with a control group of its own.
//!
//! `launch.rs` is what happens between fork and exec; here is what can be asked of the process afterwards.

mod launch;
mod log;

pub(crate) use launch::{Launch, start};

use crate::sandbox::cgroup::Cgroup;
use crate::sandbox::interface::Interface;
use crate::sandbox::process_end::ends_within;
use crate::sandbox::process_table;
use experiment::environment::EnvironmentError;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ExitStatus};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// A process to start.
#[derive(Clone, Debug)]
pub struct ContainerSpec {
    /// Its name within the pod: lower-case letters, digits and dashes.
    pub name: String,
    /// The program, a path or a name that is looked for in PATH.
    pub program: PathBuf,
    /// Its arguments, the program's name not among them.
    pub arguments: Vec<OsString>,
    /// Its whole environment; PATH is added where absent. Nothing is inherited.
    pub environment: BTreeMap<String, OsString>,
    /// CPU limit as in a pod's specification, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
    /// Whom it runs as.
    pub user: ContainerUser,
    /// Where it starts; absent: where we are.
    pub working_directory: Option<PathBuf>,
    /// The file for its standard output, made with mode 0600 or appended to.
    pub output_log: PathBuf,
    /// What becomes of its standard error.
    pub error_output: ErrorOutput,
}

/// Whom a process runs as. No process of a lab keeps a capability, but for the one named here.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ContainerUser {
    /// The user who runs the lab.
    #[default]
    Lab,
    /// A proxy: user 1337 where that can be had, else the lab's user with `CAP_NET_ADMIN` in the pod, so that it can mark
    /// its sockets ([`crate::ProxyIdentity`]).
    Proxy,
    /// The user who runs the lab, with the capabilities that rules of the pod's network need (`CAP_NET_ADMIN` and
    /// `CAP_NET_RAW`), as a pod's init container has them.
    NetworkSetup,
    /// The user who runs the lab, with the capabilities that a proxy of a whole node needs to open its sockets in other
    /// pods: those of [`ContainerUser::NetworkSetup`] and `CAP_SYS_ADMIN`, as Istio gives them to ztunnel.
    NodeProxy,
}

/// What becomes of a process's standard error.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum ErrorOutput {
    /// The same file as standard output.
    #[default]
    WithOutput,
    /// A file of its own, made with mode 0600 or appended to.
    Log(PathBuf),
    /// A pipe to us: [`Container::take_error_output`].
    Piped,
}

/// A process that was started. Copies mean the same process; its pod ends it.
#[derive(Clone, Debug)]
pub struct Container(Arc<Process>);

#[derive(Debug)]
struct Process {
    name: String,
    pod: String,
    pid: Pid,
    /// Becomes readable when the process ends.
    file: OwnedFd,
    state: Mutex<State>,
    cgroup: Option<Cgroup>,
    interface: Interface,
    logs: Vec<PathBuf>,
    /// Processes that it started and cannot do without, each with its name and a file as `file` above.
    indispensable: Mutex<Vec<(String, OwnedFd)>>,
    /// What was first found to be wrong with it. It is not asked again: whatever ended a trial stays its cause.
    failure: OnceLock<String>,
}

#[derive(Debug)]
struct State {
    child: Child,
    error_output: Option<ChildStderr>,
    status: Option<ExitStatus>,
}

impl Container {
    /// Its name within the pod.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its number within the lab, as in the lab's `/proc`.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Its control group; absent where the lab has none ([`crate::Lab::cgroup_version`]). It can be read until the pod goes.
    #[must_use]
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.0.cgroup.as_ref()
    }

    /// Its pod's network interface.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.0.interface
    }

    /// Its standard error, where [`ErrorOutput::Piped`] was asked for and it has not been taken yet.
    #[must_use]
    pub fn take_error_output(&self) -> Option<ChildStderr> {
        self.state().error_output.take()
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn has_exited(&self) -> Option<ExitStatus> {
        self.wait(Duration::ZERO)
    }

    /// Takes one of the processes that it started for indispensable: [`Self::failed`] tells of its end too, however long the
    /// container itself goes on.
    ///
    /// # Errors
    /// Where there is no such process.
    pub(crate) fn cannot_do_without(&self, name: &str, pid: i32) -> io::Result<()> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        let file = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        self.indispensable().push((name.to_owned(), file));
        Ok(())
    }

    /// What is wrong with it, as words that go on after its name (`has died: …`, `stands still: …`); nothing while all goes
    /// well. It has died where it or a process that it cannot do without has ended, and stands still where one of its
    /// processes was stopped, as SIGSTOP does: then it answers nobody, and never says so. One that was found silent
    /// ([`crate::life`]) has failed too. What was once found stays so, whatever becomes of it later.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        if let Some(failure) = self.0.failure.get() {
            return Some(failure.clone());
        }
        let failure = self.died_or_stands_still()?;
        Some(self.0.failure.get_or_init(|| failure).clone())
    }

    /// Takes it for failed from now on, in these words: it is alive and answers nobody.
    pub(crate) fn was_found_silent(&self, how: &str) {
        // What was found before says more.
        let _ = self.failed().is_none() && self.0.failure.set(how.to_owned()).is_ok();
    }

    fn died_or_stands_still(&self) -> Option<String> {
        let missing = self.indispensable().iter().find_map(|(name, file)| {
            ends_within(file, Duration::ZERO).then(|| format!("its {name} has ended"))
        });
        match (self.has_exited(), missing) {
            // It ended well because it had nothing left to do: what ended first is the cause.
            (Some(status), Some(missing)) if status.success() => {
                Some(format!("has died: {missing}, and itself thereafter with {status}"))
            }
            (Some(status), _) => Some(format!("has died: {status}")),
            (None, Some(missing)) => Some(format!("has died: {missing}")),
            (None, None) => self.stands_still(),
        }
    }

    /// Which of its processes was stopped, as words that go on after its name; nothing while none is.
    pub(crate) fn stands_still(&self) -> Option<String> {
        let proc = Path::new("/proc");
        let stopped = |pid: &i32| process_table::stat(proc, *pid).is_ok_and(|stat| stat.is_stopped());
        let pid = self.processes().into_iter().find(stopped)?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some(match name.trim_end() {
            // Started through `/proc/self/exe`: a name that says nothing.
            "exe" | "" => "stands still: it was stopped by a signal".to_owned(),
            name => format!("stands still: its process {name} was stopped by a signal"),
        })
    }

    /// For whoever waits for it: an error with its last words where something is wrong with it.
    ///
    /// # Errors
    /// That one.
    pub fn check(&self, operation: impl Into<String>) -> Result<(), EnvironmentError> {
        self.failed().map_or(Ok(()), |how| Err(self.failure(operation, &how)))
    }

    /// All its processes, as numbered in the lab's `/proc`.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let grouped = self.cgroup().and_then(|cgroup| cgroup.processes().ok());
        grouped.unwrap_or_else(|| process_table::descendants(Path::new("/proc"), self.pid().cast_signed()))
    }

    fn indispensable(&self) -> std::sync::MutexGuard<'_, Vec<(String, OwnedFd)>> {
        self.0.indispensable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its end, at most this long.
    #[must_use]
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

    /// Ends what is left of the process group, then takes the exit status. In this order the group's number cannot have
    /// passed to others: it is ours until the dead leader is reaped.
    fn reap(&self, state: &mut State) -> ExitStatus {
        if let Some(status) = state.status {
            return status;
        }
        // Refused only where nobody is left in the group.
        let _ = rustix::process::kill_process_group(self.0.pid, Signal::KILL);
        let status =
            state.child.wait().expect("a child of ours that has ended and was not reaped can be waited for");
        state.status = Some(status);
        status
    }

    /// Asks it to end (SIGTERM), and ends it where it has not within `grace`. Its children go with it.
    ///
    /// # Errors
    /// Where the kernel does not end it in time: it is stuck in the kernel.
    pub fn stop(&self, grace: Duration) -> Result<ExitStatus, EnvironmentError> {
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

    /// Asks it to end early and keep what it has (SIGINT).
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Ends it and its process group at once, without waiting.
    pub(crate) fn kill(&self) {
        let state = self.state();
        if state.status.is_none() {
            let _ = rustix::process::kill_process_group(self.0.pid, Signal::KILL);
        }
    }

    /// Reaps those of its process group that have fallen to us since it ended; says whether none is left. The group's
    /// number is not given to others as long as one of them is there, dead or not.
    pub(crate) fn reap_orphans(&self) -> bool {
        if self.state().status.is_none() {
            // It could not be ended, which was reported; its own status is not ours to take here.
            return true;
        }
        loop {
            match rustix::process::waitpgid(self.0.pid, WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Sends a signal to the process, if it has not been reaped: until then its number cannot pass to another.
    fn signal(&self, signal: Signal) {
        let state = self.state();
        if state.status.is_none() {
            // Refused only where it has just ended.
            let _ = rustix::process::kill_process(self.0.pid, signal);
        }
    }

    /// The last lines of its logs, at most `lines` of each.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        self.0.logs.iter().flat_map(|path| log::tail(path, lines)).collect()
    }

    /// The error of a process that ended otherwise than it should: its status and its last words.
    #[must_use]
    pub fn ended_early(&self, operation: impl Into<String>, status: ExitStatus) -> EnvironmentError {
        self.failure(operation, &format!("ended with {status}"))
    }

    /// The error of a process that fails like this, with its last words.
    fn failure(&self, operation: impl Into<String>, how: &str) -> EnvironmentError {
        let tail = self.log_tail(3);
        let words = if tail.is_empty() { String::new() } else { format!(": {}", tail.join(" / ")) };
        EnvironmentError::new(operation, format!("{}/{} {how}{words}", self.0.pod, self.0.name))
            .with_hint(self.where_all_is_that_it_said())
            .about_component(self.name(), self.last_lines())
    }

    /// For whoever wants to know more of its end, in words.
    pub(crate) fn where_all_is_that_it_said(&self) -> String {
        let logs: Vec<String> = self.0.logs.iter().map(|path| path.display().to_string()).collect();
        format!("all that {} said is in {}", self.0.name, logs.join(" and "))
    }

    /// The last lines of its logs, as they are recorded of one that failed.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.log_tail(LAST_LINES)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines of a failed component's log that are recorded.
const LAST_LINES: usize = 20;

/// Time for the kernel to reap a process after SIGKILL; it takes microseconds, more with much memory.
pub(crate) const ENDED_TIMEOUT: Duration = Duration::from_secs(5);
