//! Processes in `/proc`: enough to recognise one later, even if its number was reused.
//! Pure parsing first, reading after it. Memory and context switches are in [`crate::observe`].

use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A process's number and start time, which no other process shares.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// Field 22 of `/proc/<pid>/stat`.
    pub start_time_ticks: u64,
}

/// From the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Fields of `/proc/<pid>/stat` (proc_pid_stat(5)). CPU times cover all threads, ended ones included; the kernel
/// scales them to what the scheduler measured and prints clock ticks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stat {
    /// Cut to 15 characters by the kernel.
    pub name: String,
    /// Such as `S`; `Z` and `X` are dead, `T` is stopped.
    pub state: char,
    pub parent_pid: i32,
    pub kernel_thread: bool,
    pub user_ticks: u64,
    pub system_ticks: u64,
    /// CPU of children that have ended and were waited for.
    pub ended_children_user_ticks: u64,
    pub ended_children_system_ticks: u64,
    /// Since boot.
    pub start_time_ticks: u64,
}

impl Stat {
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Whether a signal has stopped the process. One held by a debugger does not count: it may continue at any moment.
    pub fn is_stopped(&self) -> bool {
        self.state == 'T'
    }
}

/// Parses `/proc/<pid>/stat`. The command name may hold blanks and parentheses, so fields count from the last `)`.
pub fn parse_stat(text: &str) -> Option<Stat> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let name = text.get(open + 1..close)?.to_owned();
    let mut fields = text[close + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent_pid = fields.next()?.parse().ok()?;
    // Fields 3 and 4 are taken; each call skips some and reads the next.
    let mut number = |skipped: usize| fields.nth(skipped)?.parse::<u64>().ok();
    Some(Stat {
        name,
        state,
        parent_pid,
        kernel_thread: number(4)? & KERNEL_THREAD != 0,
        user_ticks: number(4)?,
        system_ticks: number(0)?,
        ended_children_user_ticks: number(0)?,
        ended_children_system_ticks: number(0)?,
        start_time_ticks: number(4)?,
    })
}

/// The process's number in each PID namespace that it is in, outermost first (`NSpid` of `/proc/<pid>/status`).
pub fn parse_namespace_pids(status: &str) -> Option<Vec<i32>> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().map(|pid| pid.parse().ok()).collect()
}

pub fn stat(proc: &Path, pid: i32) -> io::Result<Stat> {
    let text = fs::read(proc.join(pid.to_string()).join("stat"))?;
    parse_stat(&String::from_utf8_lossy(&text))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat is malformed")))
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
    pub fn of(proc: &Path, pid: i32) -> io::Result<Self> {
        Ok(Self { pid, start_time_ticks: stat(proc, pid)?.start_time_ticks })
    }

    pub fn current() -> io::Result<Self> {
        Self::of(Path::new("/proc"), rustix::process::getpid().as_raw_nonzero().get())
    }

    /// Whether this very process still runs; one that waits to be reaped does not.
    pub fn is_alive(&self, proc: &Path) -> bool {
        stat(proc, self.pid)
            .is_ok_and(|stat| stat.start_time_ticks == self.start_time_ticks && !stat.is_dead())
    }

    /// Whether this very process still exists, even dead: its first thread may have ended before the others.
    pub fn is_there(&self, proc: &Path) -> bool {
        stat(proc, self.pid).is_ok_and(|stat| stat.start_time_ticks == self.start_time_ticks)
    }

    pub fn raw(&self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }
}

/// A process and its descendants, as far as their parents still live.
pub fn descendants(proc: &Path, pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(children(proc, parent));
        next += 1;
    }
    found
}

/// Whether any thread of a process or its descendants runs or waits for a CPU or a disk at this moment.
pub fn is_active(proc: &Path, pid: i32) -> bool {
    descendants(proc, pid).into_iter().flat_map(|pid| threads(proc, pid)).any(|thread| {
        let text = fs::read(thread.join("stat")).unwrap_or_default();
        parse_stat(&String::from_utf8_lossy(&text)).is_some_and(|stat| matches!(stat.state, 'R' | 'D'))
    })
}

fn threads(proc: &Path, pid: i32) -> Vec<PathBuf> {
    let tasks = fs::read_dir(proc.join(pid.to_string()).join("task"));
    tasks.map(|tasks| tasks.flatten().map(|task| task.path()).collect()).unwrap_or_default()
}

/// The children that any thread of a process has started (proc_pid_children(5)).
fn children(proc: &Path, pid: i32) -> Vec<i32> {
    let of_thread = |thread: PathBuf| fs::read_to_string(thread.join("children")).unwrap_or_default();
    let lists: Vec<String> = threads(proc, pid).into_iter().map(of_thread).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE_NAME: &str = "4211 (a) b (c) S 1 4211 4211 0 -1 4194560 208 12 3 0 1412 877 21 9 20 0 1 0 861233 \
                                5652480 377 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    const KERNEL_WORKER: &str = "14 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 141 0 0 20 0 1 0 15 0 0 \
                                 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let expected = Stat {
            name: "a) b (c".to_owned(),
            state: 'S',
            parent_pid: 1,
            kernel_thread: false,
            user_ticks: 1412,
            system_ticks: 877,
            ended_children_user_ticks: 21,
            ended_children_system_ticks: 9,
            start_time_ticks: 861_233,
        };
        assert_eq!(parse_stat(HOSTILE_NAME), Some(expected));
    }

    #[test]
    fn a_kernel_thread_is_recognised() {
        let stat = parse_stat(KERNEL_WORKER).expect("it is well-formed");
        assert!(stat.kernel_thread);
        assert_eq!(stat.system_ticks, 141);
    }

    #[test]
    fn a_cut_line_is_refused() {
        assert_eq!(parse_stat("12 (sleep) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn the_numbers_in_nested_namespaces_are_read_in_order() {
        let status = "Name:\tsleep\nNStgid:\t812\t7\nNSpid:\t812\t7\nNSpgid:\t812\t7\n";
        assert_eq!(parse_namespace_pids(status), Some(vec![812, 7]));
        assert_eq!(parse_namespace_pids("Name:\tsleep\n"), None);
    }

    #[test]
    fn a_number_in_other_hands_is_another_process() {
        let proc = Path::new("/proc");
        let mut identity = ProcessIdentity::current().expect("proc is mounted");
        assert!(identity.is_alive(proc));
        identity.start_time_ticks += 1;
        assert!(!identity.is_alive(proc));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(text in "\\PC*") {
            let _ = parse_stat(&text);
        }
    }
}
