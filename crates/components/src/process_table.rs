//! Processes in `/proc`: enough to recognise one later, even if its PID was reused. Memory and context
//! switches are read by the lab (`observe`).

use procfs_core::FromRead as _;
pub use procfs_core::process::Stat;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// PID and start time of a process, which together are unique.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// Field 22 of `/proc/<pid>/stat`.
    pub start_time_ticks: u64,
}

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u32 = 0x0020_0000;

pub fn is_dead(process: &Stat) -> bool {
    matches!(process.state, 'Z' | 'X' | 'x')
}

/// True if a signal has stopped the process. One that a debugger holds does not count: it may continue at any
/// moment.
pub fn is_stopped(process: &Stat) -> bool {
    process.state == 'T'
}

pub fn is_kernel_thread(process: &Stat) -> bool {
    process.flags & KERNEL_THREAD != 0
}

pub fn stat(proc: &Path, pid: i32) -> io::Result<Stat> {
    read_stat(&proc.join(pid.to_string()))
}

fn read_stat(process: &Path) -> io::Result<Stat> {
    parse_stat(&fs::read(process.join("stat"))?)
}

/// Parses `/proc/<pid>/stat`: the PID, the name in parentheses, and other fields.
pub fn parse_stat(text: &[u8]) -> io::Result<Stat> {
    let begin = text.iter().position(|byte| *byte == b'(');
    let end = text.iter().rposition(|byte| *byte == b')');
    let is_whole = begin.zip(end).is_some_and(|(begin, end)| {
        let state = text.get(end + 2).is_some_and(u8::is_ascii_alphabetic);
        let has_fields = state && text[..end + 2].ends_with(b") ");
        begin < end && text[0].is_ascii_digit() && text[..begin].ends_with(b" ") && has_fields
    });
    if !is_whole {
        // `procfs-core` panics for want of these.
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no PID, name and state"));
    }
    Stat::from_read(text).map_err(io::Error::other)
}

pub fn pids(proc: &Path) -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir(proc)? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            pids.push(pid);
        }
    }
    Ok(pids)
}

impl ProcessIdentity {
    pub fn read(proc: &Path, pid: i32) -> io::Result<Self> {
        Ok(Self { pid, start_time_ticks: stat(proc, pid)?.starttime })
    }

    pub fn current() -> io::Result<Self> {
        Self::read(Path::new("/proc"), rustix::process::getpid().as_raw_nonzero().get())
    }

    /// True if this very process still runs. A zombie does not count.
    pub fn is_alive(&self, proc: &Path) -> bool {
        stat(proc, self.pid).is_ok_and(|stat| stat.starttime == self.start_time_ticks && !is_dead(&stat))
    }

    /// True if this very process still exists, even as a zombie: its first thread may have ended before the
    /// others.
    pub fn is_there(&self, proc: &Path) -> bool {
        stat(proc, self.pid).is_ok_and(|stat| stat.starttime == self.start_time_ticks)
    }

    pub fn raw(&self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }
}

/// A process and its descendants, as far as their parents are still alive.
pub fn descendants(proc: &Path, pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(children(proc, parent));
        next += 1;
    }
    found
}

/// True if any thread of a process or its descendants is running or waiting for a CPU or a disk.
pub fn is_active(proc: &Path, pid: i32) -> bool {
    let mut threads = descendants(proc, pid).into_iter().flat_map(|pid| threads(proc, pid));
    threads.any(|thread| read_stat(&thread).is_ok_and(|stat| matches!(stat.state, 'R' | 'D')))
}

fn threads(proc: &Path, pid: i32) -> Vec<PathBuf> {
    let tasks = fs::read_dir(proc.join(pid.to_string()).join("task"));
    tasks.map(|tasks| tasks.flatten().map(|task| task.path()).collect()).unwrap_or_default()
}

/// Children that any thread of a process has started (proc_pid_children(5)).
fn children(proc: &Path, pid: i32) -> Vec<i32> {
    let of_thread = |thread: PathBuf| fs::read_to_string(thread.join("children")).unwrap_or_default();
    let lists: Vec<String> = threads(proc, pid).into_iter().map(of_thread).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_fields_around_the_name_is_error() {
        for text in ["", "(a)", "7 (a)", "7 (a) ", " (a) S", "7 )a( S", "7(a) S", "7 (a)S", "7 (a) \u{a0}"] {
            assert!(parse_stat(text.as_bytes()).is_err(), "{text}");
        }
        let fields = " 1".repeat(20);
        let stat = parse_stat(format!("71 (en) (voy) S{fields} 18446744073709551615{fields}\n").as_bytes());
        assert_eq!(stat.map(|stat| (stat.pid, stat.comm)).unwrap(), (71, "en) (voy".to_owned()));
    }

    #[test]
    fn reused_pid_is_other_process() {
        let proc = Path::new("/proc");
        let mut identity = ProcessIdentity::current().expect("proc is mounted");
        assert!(identity.is_alive(proc));
        identity.start_time_ticks += 1;
        assert!(!identity.is_alive(proc));
    }
}
