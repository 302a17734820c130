//! What `/proc/<pid>` says of one process's use of the machine: parsing first, reading after it.
//!
//! CPU times are those of the process with all its threads, ended ones included; the kernel scales them to what the
//! scheduler measured and prints them in clock ticks (10 ms). See proc_pid_stat(5), proc_pid_status(5).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`: it runs in the kernel alone.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The fields of `/proc/<pid>/stat` that sampling needs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProcessTimes {
    /// Command name, cut to 15 characters by the kernel.
    pub name: String,
    /// The parent's number.
    pub parent_pid: i32,
    /// Whether it is a thread of the kernel.
    pub kernel_thread: bool,
    /// CPU in user mode, clock ticks.
    pub user_ticks: u64,
    /// CPU in the kernel, clock ticks.
    pub system_ticks: u64,
    /// CPU of its children that have ended and were waited for, both modes, clock ticks.
    pub ended_children_ticks: u64,
    /// When it started, clock ticks since boot.
    pub start_time_ticks: u64,
}

/// Context switches.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Switches {
    /// The thread waited for something.
    pub voluntary: u64,
    /// The thread was made to give way.
    pub involuntary: u64,
}

/// Bytes on an interface since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InterfaceBytes {
    /// Received, with link headers.
    pub received: u64,
    /// Sent, with link headers.
    pub sent: u64,
}

/// Parses `/proc/<pid>/stat`. The command name may hold blanks and parentheses, so fields count from the last `)`.
#[must_use]
pub fn parse_times(text: &str) -> Option<ProcessTimes> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let name = text.get(open + 1..close)?.to_owned();
    let fields: Vec<&str> = text[close + 1..].split_ascii_whitespace().collect();
    // The first field after the name is field 3 of proc_pid_stat(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    // Children's times are signed in the kernel's print, though never negative.
    let ended_children_ticks = number(16)? + number(17)?;
    Some(ProcessTimes {
        name,
        parent_pid: fields.get(1)?.parse().ok()?,
        kernel_thread: number(9)? & KERNEL_THREAD != 0,
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        ended_children_ticks,
        start_time_ticks: number(22)?,
    })
}

/// Memory of a process; none of it for a dead one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProcessMemory {
    /// Resident, bytes. Pages that processes share count for each.
    pub resident_bytes: u64,
    /// Of which anonymous: heap and stacks, pages of no file, bytes.
    pub anonymous_bytes: u64,
}

/// The memory in `/proc/<pid>/status`.
#[must_use]
pub fn parse_memory(status: &str) -> ProcessMemory {
    let bytes = |label| labelled_number(status, label).unwrap_or(0) * 1024;
    ProcessMemory { resident_bytes: bytes("VmRSS:"), anonymous_bytes: bytes("RssAnon:") }
}

/// The context switches in `/proc/<pid>/task/<tid>/status`.
#[must_use]
pub fn parse_switches(status: &str) -> Option<Switches> {
    Some(Switches {
        voluntary: labelled_number(status, "voluntary_ctxt_switches:")?,
        involuntary: labelled_number(status, "nonvoluntary_ctxt_switches:")?,
    })
}

/// The bytes of one interface in `/proc/<pid>/net/dev`.
#[must_use]
pub fn parse_interface(table: &str, interface: &str) -> Option<InterfaceBytes> {
    let counts =
        table.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    let mut counts = counts.split_ascii_whitespace().map(str::parse);
    // Eight counts received, then eight sent; bytes lead each.
    let received = counts.next()?.ok()?;
    let sent = counts.nth(7)?.ok()?;
    Some(InterfaceBytes { received, sent })
}

fn labelled_number(text: &str, label: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(label))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

/// Reads a process's CPU times below this mount of proc.
///
/// # Errors
/// Where there is no such process.
pub fn times(proc: &Path, pid: i32) -> io::Result<ProcessTimes> {
    let path = proc.join(pid.to_string()).join("stat");
    // The name is whatever bytes the process chose.
    let text = fs::read(&path)?;
    parse_times(&String::from_utf8_lossy(&text)).ok_or_else(|| malformed(&path))
}

/// Reads a process's memory.
///
/// # Errors
/// Where there is no such process.
pub fn memory(proc: &Path, pid: i32) -> io::Result<ProcessMemory> {
    let status = fs::read(proc.join(pid.to_string()).join("status"))?;
    Ok(parse_memory(&String::from_utf8_lossy(&status)))
}

/// Reads the context switches of each thread that a process has now, by the thread's number.
///
/// # Errors
/// Where there is no such process.
pub fn switches(proc: &Path, pid: i32) -> io::Result<BTreeMap<i32, Switches>> {
    let mut threads = BTreeMap::new();
    for task in fs::read_dir(proc.join(pid.to_string()).join("task"))? {
        let task = task?;
        let Some(thread) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A thread may end between the listing and the reading.
        let Ok(status) = fs::read(task.path().join("status")) else { continue };
        if let Some(switches) = parse_switches(&String::from_utf8_lossy(&status)) {
            threads.insert(thread, switches);
        }
    }
    Ok(threads)
}

/// The context switches of all threads between two readings; nothing where a thread ended in between and took its count
/// with it.
#[must_use]
pub fn switches_between(open: &BTreeMap<i32, Switches>, close: &BTreeMap<i32, Switches>) -> Option<Switches> {
    if open.is_empty() || open.keys().any(|thread| !close.contains_key(thread)) {
        return None;
    }
    let mut sum = Switches::default();
    for (thread, close) in close {
        let open = open.get(thread).copied().unwrap_or_default();
        sum.voluntary += close.voluntary.saturating_sub(open.voluntary);
        sum.involuntary += close.involuntary.saturating_sub(open.involuntary);
    }
    Some(sum)
}

/// The interfaces of the network namespace that a process is in. The namespace can be read through this even when the
/// process has ended.
#[derive(Debug)]
pub struct Interfaces(File);

impl Interfaces {
    /// Opens those of a running process.
    ///
    /// # Errors
    /// Where there is no such process.
    pub fn of(proc: &Path, pid: i32) -> io::Result<Self> {
        File::open(proc.join(pid.to_string()).join("net/dev")).map(Self)
    }

    /// Reads the bytes of one of them.
    ///
    /// # Errors
    /// Where there is no such interface.
    pub fn bytes(&self, interface: &str) -> io::Result<InterfaceBytes> {
        // From its beginning, the table is made anew.
        let mut file = &self.0;
        file.seek(SeekFrom::Start(0))?;
        let mut table = String::new();
        file.read_to_string(&mut table)?;
        parse_interface(&table, interface).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {interface}"))
        })
    }
}

fn malformed(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} is malformed", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENVOY: &str = "6120 (wrk:worker (0)) S 6100 6120 6120 0 -1 4194560 15208 12 3 0 1412 877 21 9 20 0 11 0 861233 \
                         2525652480 17377 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    const KERNEL_WORKER: &str = "14 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 141 0 0 20 0 1 0 15 0 0 \
                                 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn times_are_read_past_a_name_with_parentheses() {
        let times = parse_times(ENVOY).unwrap();
        let expected = ProcessTimes {
            name: "wrk:worker (0)".to_owned(),
            parent_pid: 6100,
            kernel_thread: false,
            user_ticks: 1412,
            system_ticks: 877,
            ended_children_ticks: 30,
            start_time_ticks: 861_233,
        };
        assert_eq!(times, expected);
    }

    #[test]
    fn threads_of_the_kernel_are_told_from_processes() {
        let times = parse_times(KERNEL_WORKER).unwrap();
        assert!(times.kernel_thread);
        assert_eq!(times.system_ticks, 141);
    }

    #[test]
    fn status_gives_memory_and_switches() {
        let status = "Name:\tenvoy\nVmRSS:\t   71234 kB\nRssAnon:\t   17234 kB\nvoluntary_ctxt_switches:\t150\n\
                      nonvoluntary_ctxt_switches:\t545\n";
        let memory = ProcessMemory { resident_bytes: 71_234 * 1024, anonymous_bytes: 17_234 * 1024 };
        assert_eq!(parse_memory(status), memory);
        assert_eq!(parse_memory("Name:\tdead\n"), ProcessMemory::default());
        assert_eq!(parse_switches(status), Some(Switches { voluntary: 150, involuntary: 545 }));
        assert_eq!(parse_switches("Name:\tenvoy\n"), None);
    }

    #[test]
    fn an_interface_is_found_by_its_whole_name() {
        let table = "Inter-|   Receive       |  Transmit\n face |bytes    packets errs |bytes\n\
                     \x20 eth01:       1       2    0    0    0     0          0         0     3       4    0    0    0     0       0          0\n\
                     \x20 eth0: 430407097   16121    0    0    0     0          0         0  1075049   10839    0    0    0     0       0          0\n";
        let expected = InterfaceBytes { received: 430_407_097, sent: 1_075_049 };
        assert_eq!(parse_interface(table, "eth0"), Some(expected));
        assert_eq!(parse_interface(table, "eth1"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let (proc, pid) = (Path::new("/proc"), std::process::id().cast_signed());
        assert!(!times(proc, pid).unwrap().kernel_thread);
        let memory = memory(proc, pid).unwrap();
        assert!(memory.anonymous_bytes > 0 && memory.resident_bytes > memory.anonymous_bytes, "{memory:?}");
        assert!(switches(proc, pid).unwrap().contains_key(&pid));
        assert!(Interfaces::of(proc, pid).unwrap().bytes("no-such").is_err());
    }

    #[test]
    fn switches_of_a_thread_that_ended_make_the_sum_unknown() {
        let switches = |voluntary| Switches { voluntary, involuntary: 1 };
        let open = BTreeMap::from([(1, switches(10)), (2, switches(20))]);
        let begun = BTreeMap::from([(1, switches(15)), (2, switches(21)), (3, switches(7))]);
        assert_eq!(switches_between(&open, &begun), Some(Switches { voluntary: 13, involuntary: 1 }));
        assert_eq!(switches_between(&open, &BTreeMap::from([(1, switches(15))])), None);
        assert_eq!(switches_between(&BTreeMap::new(), &BTreeMap::new()), None);
    }

    #[test]
    fn interfaces_are_read_after_their_processs_end() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let interfaces = Interfaces::of(Path::new("/proc"), child.id().cast_signed()).unwrap();
        let before = interfaces.bytes("lo").unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(interfaces.bytes("lo").unwrap().received > before.received);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "\\PC*") {
            let _ = parse_times(&text);
            let _ = parse_switches(&text);
            let _ = parse_interface(&text, "eth0");
        }
    }
}
