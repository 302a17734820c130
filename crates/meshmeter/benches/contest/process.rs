//! Programs pinned to a CPU, run until they exit.
//!
//! The CPU time of a program is read from `/proc` after its exit and before it is reaped: one source for all
//! programs, including all threads and the startup. The kernel reports it in steps of 10 ms.

use super::Outcome;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, fmt, thread};

/// Timeout for a program to start, or to exit after it is due.
pub const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// CPU on which a program runs.
#[derive(Clone, Copy)]
pub enum Place {
    /// The first CPU that this process may use.
    Server,
    /// The second CPU that this process may use; if there is only one, the server's.
    Generator,
}

/// Number of the CPU of a place.
///
/// # Errors
/// Returns an error if the kernel does not report which CPUs may be used.
pub fn cpu(place: Place) -> Outcome<usize> {
    let allowed = sched_getaffinity(None)?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let first = cpus.next().ok_or("no CPU may be used")?;
    Ok(match place {
        Place::Server => first,
        Place::Generator => cpus.next().unwrap_or(first),
    })
}

/// A command pinned to one CPU, with empty standard input.
///
/// # Errors
/// Returns an error if the kernel does not report which CPUs may be used.
pub fn pinned(place: Place, program: &Path) -> Outcome<Command> {
    let mut command = Command::new("taskset");
    command.stdin(Stdio::null());
    command.args(["-c", &cpu(place)?.to_string()]).arg(program);
    Ok(command)
}

/// Path of a command, if it is in PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A program that has exited.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// CPU time of all threads from start to exit, seconds.
    pub cpu_s: f64,
}

/// Runs a program until it exits, up to `within`. Nothing polls in the meantime.
///
/// # Errors
/// Returns an error if it does not start or does not exit in time; it is then killed.
pub fn run_to_end(command: &mut Command, within: Duration) -> Outcome<Ended> {
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let mut child = command.spawn().map_err(|error| format!("start {command:?}: {error}"))?;
    let used_s = wait_for_end(&child, within).and_then(|()| cpu_of_ended_s(child.id()));
    if used_s.is_err() {
        // It may have exited by itself, and is reaped below in any case.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let cpu_s = used_s.map_err(|error| format!("{command:?}: {error}"))?;
    Ok(Ended { status, stdout: text(&mut stdout)?, stderr: text(&mut stderr)?, cpu_s })
}

fn wait_for_end(child: &Child, within: Duration) -> Outcome<()> {
    let deadline = Instant::now() + within;
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let ready = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&Timespec::try_from(left)?));
        match ready {
            Ok(0) => return Err(format!("did not end within {} s", within.as_secs()).into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// User and system time of a process that has exited but is not reaped, seconds.
fn cpu_of_ended_s(process: u32) -> Outcome<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // After the name, which may contain any character, fields 14 and 15 are the 12th and 13th.
    let (_, fields) = stat.rsplit_once(')').ok_or("stat has no name")?;
    let ticks: Vec<u64> =
        fields.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn text(file: &mut File) -> Outcome<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Polls until there is a result, or until the timeout.
pub fn until<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= deadline {
            return answer;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Resident memory of a process, by its number or `self`, bytes.
pub fn resident_bytes(process: impl fmt::Display) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = resident.and_then(|text| text.trim().strip_suffix(" kB")).ok_or("no VmRSS")?;
    Ok(kib.parse::<u64>()? * 1024)
}
