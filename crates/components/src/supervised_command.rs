//! Commands that take minutes. Their progress is shown, they have a timeout, and they are ended with all of
//! their children when the user requests it.
//!
//! Such a command has a process group of its own, so that a signal reaches its children too. If this program
//! is killed, the kernel kills the command; its children then end by themselves within seconds. None of them
//! can clean up, so their callers give them temporary directories that are removed with the installation.

use crate::Result;
use crate::process_end::ends_within;
use experiment::environment::EnvironmentError;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// Maximum number of lines kept per stream.
const MAX_LINES: usize = 40;
const MAX_LINE_BYTES: u64 = 4096;

/// Maximum length of a quoted line.
const MAX_QUOTE_CHARACTERS: usize = 300;
const INTERRUPTED_HINT: &str = "what was finished stays; `meshmeter lab install` goes on from there";

/// Called ten times per second with the elapsed time and the last line of output, which is empty at first.
/// False ends the command.
pub(super) type Look<'a> = dyn FnMut(Duration, &str) -> bool + 'a;

#[derive(Debug)]
pub(super) struct Ended {
    pub status: ExitStatus,
    /// Only the last lines; the same for `errors`.
    pub output: Vec<String>,
    pub errors: Vec<String>,
}

impl Ended {
    /// The last `lines` matching lines of standard error as one text of bounded length. Without any, the exit
    /// status.
    pub(super) fn quote(&self, lines: usize, wanted: impl Fn(&str) -> bool) -> String {
        let said: Vec<&str> =
            self.errors.iter().map(|line| line.trim()).filter(|line| wanted(line)).collect();
        let quoted = said[said.len().saturating_sub(lines)..].iter().map(|line| {
            let line: String = line.chars().filter(|letter| !letter.is_control()).collect();
            match line.char_indices().nth(MAX_QUOTE_CHARACTERS) {
                Some((end, _)) => format!("{}…", &line[..end]),
                None => line,
            }
        });
        let quoted = quoted.collect::<Vec<_>>().join("; ");
        if quoted.is_empty() { format!("it ended with {}", self.status) } else { quoted }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it was interrupted")]
    Interrupted,
    #[error("it had not ended after {} s", .0.as_secs())]
    TimedOut(Duration),
}

/// Runs a command that must succeed. The error quotes the end of its output, without Go's download messages.
pub(super) fn run_well(
    command: &mut Command,
    operation: &str,
    hint: &str,
    timeout: Duration,
    look: &mut Look<'_>,
) -> Result<Ended> {
    let ended = run(command, timeout, look).map_err(|error| {
        let hint = if matches!(error, CommandError::Interrupted) { INTERRUPTED_HINT } else { hint };
        EnvironmentError::new(operation, error).with_hint(hint)
    })?;
    if ended.status.success() {
        return Ok(ended);
    }
    let quote = ended.quote(4, |line| !line.starts_with("go: downloading"));
    Err(EnvironmentError::new(operation, quote).with_hint(hint))
}

/// Runs a command. It is ended if `look` returns false, and after `limit`. On an error all its processes are
/// gone.
pub(super) fn run(
    command: &mut Command,
    limit: Duration,
    look: &mut Look<'_>,
) -> Result<Ended, CommandError> {
    let started = Instant::now();
    let mut running = Running::start(command)?;
    let output = running.child.stdout.take().map(Lines::keep_of).unwrap_or_default();
    let errors = running.child.stderr.take().map(Lines::keep_of).unwrap_or_default();
    while !ends_within(&running.end, POLL_INTERVAL) {
        let last_line = errors.last().or_else(|| output.last()).unwrap_or_default();
        if !look(started.elapsed(), &last_line) {
            return Err(CommandError::Interrupted);
        }
        if started.elapsed() > limit {
            return Err(CommandError::TimedOut(limit));
        }
    }
    let status = running.child.wait()?;
    Ok(Ended { status, output: output.take(), errors: errors.take() })
}

/// A running command. Dropping it ends the command with all of its children.
pub(super) struct Running {
    pub child: Child,
    group: Pid,
    /// A pidfd: it becomes readable when the command ends.
    pub end: OwnedFd,
}

/// Makes the kernel kill the command when the thread that starts it ends.
#[allow(unsafe_code)]
pub fn end_with_parent(command: &mut Command) {
    // SAFETY: the closure makes one system call and neither allocates nor locks, which is what is allowed between fork and
    // exec in a process with other threads (signal-safety(7)).
    unsafe {
        command.pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

impl Running {
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        end_with_parent(command);
        let mut child = command.spawn()?;
        let group = Pid::from_child(&child);
        match pidfd_open(group, PidfdFlags::empty()) {
            Ok(end) => Ok(Self { child, group, end }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }
}

impl Drop for Running {
    /// Ends the whole process group if the command has not ended.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = kill_process_group(self.group, Signal::TERM);
        if !ends_within(&self.end, GRACE) {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
        let _ = self.child.wait();
        // Children that it did not end: the process group outlives its leader.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

#[derive(Default)]
struct Lines(Arc<Mutex<VecDeque<String>>>);

impl Lines {
    fn keep_of(stream: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let kept = Self(Arc::clone(&lines.0));
        std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            // A stream that breaks is as good as one that ends: the exit status decides.
            while matches!(stream.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line), Ok(1..)) {
                kept.push(String::from_utf8_lossy(&line).trim_end());
                line.clear();
            }
        });
        lines
    }

    fn push(&self, line: &str) {
        let mut kept = self.locked();
        if kept.len() == MAX_LINES {
            kept.pop_front();
        }
        if !line.is_empty() {
            kept.push_back(line.to_owned());
        }
    }

    fn last(&self) -> Option<String> {
        self.locked().back().cloned()
    }

    /// All lines, once the command has ended. The reader may lag behind; a process left behind may hold the
    /// stream forever.
    fn take(self) -> Vec<String> {
        let deadline = Instant::now() + GRACE;
        while Arc::strong_count(&self.0) > 1 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::mem::take(&mut *self.locked()).into()
    }

    fn locked(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn ended_command_has_last_lines() {
        let mut command = shell("for i in $(seq 100); do echo line $i >&2; done; exit 3");
        let ended = run(&mut command, Duration::from_secs(20), &mut |_, _| true).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!(ended.errors.len(), MAX_LINES);
        assert_eq!(ended.errors.last().map(String::as_str), Some("line 100"));
    }

    #[test]
    fn quote_length_is_limited() {
        let quote = |script: &str| {
            let ended = run(&mut shell(script), Duration::from_secs(20), &mut |_, _| true).unwrap();
            ended.quote(2, |line| line != "no")
        };
        assert_eq!(quote("echo a >&2; echo b >&2; echo c >&2; echo no >&2"), "b; c");
        assert_eq!(quote("exit 3"), "it ended with exit status: 3");
        assert_eq!(quote("printf '\\033[31m%0500d' 0 >&2"), format!("[31m{}…", "0".repeat(296)));
    }

    #[test]
    fn interrupted_command_ends_with_its_children() {
        // The grandchild holds the pipe open and prints its PID; it ignores SIGTERM.
        let mut command = shell("sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait");
        let mut grandchild = String::new();
        let interrupted = run(&mut command, Duration::from_secs(20), &mut |_, last| {
            last.clone_into(&mut grandchild);
            last.is_empty()
        });
        assert!(matches!(interrupted, Err(CommandError::Interrupted)));
        let pid = Pid::from_raw(grandchild.parse().unwrap()).unwrap();
        // It was killed before `run` returned, but may end a moment later, which its pidfd shows.
        if let Ok(end) = pidfd_open(pid, PidfdFlags::empty()) {
            assert!(ends_within(&end, Duration::from_secs(20)));
        }
    }

    #[test]
    fn hanging_command_is_ended_at_limit() {
        let error = run(&mut shell("sleep 600"), Duration::from_millis(50), &mut |_, _| true).unwrap_err();
        assert!(matches!(error, CommandError::TimedOut(_)));
    }

    #[test]
    fn missing_command_is_error() {
        let error = run(&mut Command::new("/no/go"), Duration::from_secs(1), &mut |_, _| true).unwrap_err();
        assert!(matches!(error, CommandError::Io(error) if error.kind() == io::ErrorKind::NotFound));
    }
}
