//! The machine as a whole: `/proc/stat`, and what processes outside the experiment took.
//!
//! The kernel's share is what is left of busy time when every component and every other user process is taken off:
//! interrupts, soft interrupts that no process was charged for, and the kernel's own threads. Busy time is what is left of
//! the window without idle and stolen time: the kernel counts idle time exactly (where ticks stop in idle), but busy time
//! by samples at its timer ticks, and a load of 1000 requests a second beats in step with those: 0.07 busy cores were
//! seen counted as 0.006, and as 0.8. Resolution is still a clock tick, so the remainder is rough over short windows; it
//! is never shown as negative.

use super::process::{self, ProcessTimes};
use experiment::schema::{MachineUsage, TopProcess};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

/// How many of the other processes are named.
const NAMED: usize = 3;

/// Less than this is no news: one clock tick in ten seconds.
const WORTH_NAMING_CORES: f64 = 0.001;

/// The first line of `/proc/stat`, clock ticks since boot over all CPUs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MachineTimes {
    /// Nothing to run, or nothing but waiting for disks.
    pub idle_ticks: u64,
    /// Interrupts and soft interrupts counted apart.
    pub interrupt_ticks: u64,
    /// Time in which a CPU wanted to run and the hypervisor ran something else.
    pub steal_ticks: u64,
    /// CPUs online.
    pub cpus: usize,
}

/// Parses `/proc/stat` (proc_stat(5)).
#[must_use]
pub fn parse_machine(stat: &str) -> Option<MachineTimes> {
    let total = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = total.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let [_user, _nice, _system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
    let is_cpu = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    Some(MachineTimes {
        idle_ticks: idle + iowait,
        interrupt_ticks: irq + softirq,
        steal_ticks: steal,
        cpus: stat.lines().filter(is_cpu).count(),
    })
}

/// A process that cannot be taken for another: its number and its start.
type Identity = (i32, u64);

/// The machine at one moment.
#[derive(Clone, Debug)]
pub struct MachineReading {
    /// When it was read.
    pub at: Instant,
    /// `/proc/stat`.
    pub times: MachineTimes,
    /// Every user process that does not belong to the lab.
    others: BTreeMap<Identity, ProcessTimes>,
}

/// Reads the machine. `proc` shows all its processes; those that descend from `lab_root` belong to the lab, as does it
/// itself.
///
/// # Errors
/// Where `proc` cannot be read.
pub fn read(proc: &Path, lab_root: i32) -> io::Result<MachineReading> {
    let stat = fs::read_to_string(proc.join("stat"))?;
    let at = Instant::now();
    let times = parse_machine(&stat).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}/stat is malformed", proc.display()))
    })?;
    let mut processes = BTreeMap::new();
    for pid in crate::process_table::pids(proc)? {
        // It may end between the listing and the reading.
        if let Ok(times) = process::times(proc, pid) {
            processes.insert(pid, times);
        }
    }
    let lab = descendants(&processes, lab_root);
    let others = processes
        .into_iter()
        .filter(|(pid, times)| !times.kernel_thread && !lab.contains(pid))
        .map(|(pid, times)| ((pid, times.start_time_ticks), times))
        .collect();
    Ok(MachineReading { at, times, others })
}

/// A process and all that descend from it.
fn descendants(processes: &BTreeMap<i32, ProcessTimes>, root: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::from([root]);
    loop {
        let more: Vec<i32> = processes
            .iter()
            .filter(|(pid, times)| found.contains(&times.parent_pid) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// What happened between two readings. `lab_cores` is what the components and the observer used.
#[must_use]
pub fn usage(
    open: &MachineReading,
    close: &MachineReading,
    lab_cores: f64,
    ticks_per_second: u64,
) -> MachineUsage {
    let window_s = close.at.duration_since(open.at).as_secs_f64();
    let cores =
        |ticks: u64| if window_s > 0.0 { ticks as f64 / ticks_per_second as f64 / window_s } else { 0.0 };
    let risen = |of: fn(&MachineTimes) -> u64| cores(of(&close.times).saturating_sub(of(&open.times)));
    let steal_cores = risen(|times| times.steal_ticks);
    let idle_cores = risen(|times| times.idle_ticks);
    let busy_cores = (close.times.cpus as f64 - idle_cores - steal_cores).max(0.0);
    let by_name = others_ticks(&open.others, &close.others);
    let other_processes_cores = cores(by_name.values().sum());
    let mut top: Vec<TopProcess> =
        by_name.into_iter().map(|(name, ticks)| TopProcess { name, cpu_cores: cores(ticks) }).collect();
    top.retain(|process| process.cpu_cores >= WORTH_NAMING_CORES);
    top.sort_by(|a, b| b.cpu_cores.total_cmp(&a.cpu_cores));
    top.truncate(NAMED);
    MachineUsage {
        window_s,
        cpus: close.times.cpus,
        busy_cores,
        steal_cores,
        interrupt_cores: risen(|times| times.interrupt_ticks),
        kernel_cores: (busy_cores - lab_cores - other_processes_cores).max(0.0),
        other_processes_cores,
        top_other_processes: top,
    }
}

/// Ticks that other processes used between two readings, by name.
///
/// A process that both began and ended in between appears in neither reading, but its parent's count of ended children
/// rises by all that it used. That rise also holds what a process seen in the first reading had used before it, which is
/// therefore taken off again where that process is gone.
fn others_ticks(
    open: &BTreeMap<Identity, ProcessTimes>,
    close: &BTreeMap<Identity, ProcessTimes>,
) -> BTreeMap<String, u64> {
    let mut inherited: BTreeMap<i32, u64> = BTreeMap::new();
    for (identity, times) in open {
        if !close.contains_key(identity) {
            *inherited.entry(heir(times, open, close)).or_default() += all_ticks(times);
        }
    }
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for (identity, times) in close {
        let before = open.get(identity).map_or(0, all_ticks);
        let known = inherited.get(&identity.0).copied().unwrap_or(0);
        let own = all_ticks(times).saturating_sub(before);
        let children = open.get(identity).map_or(0, |before| before.ended_children_ticks);
        let from_children = times.ended_children_ticks.saturating_sub(children);
        // Never more is taken off than the children brought: a parent may have ignored their end.
        let used = own - known.min(from_children).min(own);
        if used > 0 {
            *by_name.entry(times.name.clone()).or_default() += used;
        }
    }
    by_name
}

/// The nearest ancestor that is still there: the ended children of an ended parent count for it.
fn heir(
    ended: &ProcessTimes,
    open: &BTreeMap<Identity, ProcessTimes>,
    close: &BTreeMap<Identity, ProcessTimes>,
) -> i32 {
    let find = |processes: &BTreeMap<Identity, ProcessTimes>, pid: i32| {
        processes.range((pid, 0)..=(pid, u64::MAX)).next().map(|(_, times)| times.parent_pid)
    };
    let mut heir = ended.parent_pid;
    // Readings are not of one instant, so that parents could form a ring where numbers were used again: bounded.
    for _ in 0..open.len() {
        if find(close, heir).is_some() {
            break;
        }
        let Some(parent) = find(open, heir) else { break };
        heir = parent;
    }
    heir
}

fn all_ticks(times: &ProcessTimes) -> u64 {
    times.user_ticks + times.system_ticks + times.ended_children_ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const STAT: &str = "cpu  59749 5611 10674 291471 1467 7 140 19 3 0\n\
                        cpu0 25624 2634 4870 151185 202 0 16 5 0 0\n\
                        cpu1 34124 2976 5804 140286 1264 0 124 14 0 0\nintr 686507 0\nctxt 5\n";

    #[test]
    fn the_first_line_is_read_and_cpus_are_counted() {
        let times = parse_machine(STAT).unwrap();
        assert_eq!(times.cpus, 2);
        assert_eq!(times.idle_ticks, 291_471 + 1467);
        assert_eq!((times.interrupt_ticks, times.steal_ticks), (147, 19));
        assert_eq!(parse_machine("cpu  1 2 3\n"), None);
    }

    fn process(name: &str, parent_pid: i32, user_ticks: u64, ended_children_ticks: u64) -> ProcessTimes {
        ProcessTimes {
            name: name.to_owned(),
            parent_pid,
            kernel_thread: false,
            user_ticks,
            system_ticks: 0,
            ended_children_ticks,
            start_time_ticks: 5,
        }
    }

    fn processes(list: &[(i32, ProcessTimes)]) -> BTreeMap<Identity, ProcessTimes> {
        list.iter().map(|(pid, times)| ((*pid, times.start_time_ticks), times.clone())).collect()
    }

    #[test]
    fn compilers_that_came_and_went_are_their_parents_cpu() {
        // cargo's compiler had used 40 ticks when the window opened, 60 more in it; another came and went with 100.
        let open = processes(&[(10, process("cargo", 1, 7, 0)), (11, process("rustc", 10, 40, 0))]);
        let close = processes(&[(10, process("cargo", 1, 9, 200))]);
        assert_eq!(others_ticks(&open, &close), BTreeMap::from([("cargo".to_owned(), 2 + 200 - 40)]));
    }

    #[test]
    fn what_an_ended_parent_leaves_goes_to_its_own_parent() {
        // make's shell and the shell's compiler both end: make's ended children hold all that either ever used.
        let open = processes(&[
            (9, process("make", 1, 0, 0)),
            (10, process("sh", 9, 1, 0)),
            (11, process("cc", 10, 40, 0)),
        ]);
        let close = processes(&[(9, process("make", 1, 0, 101))]);
        assert_eq!(others_ticks(&open, &close)["make"], 101 - 40 - 1);
    }

    #[test]
    fn a_parent_that_ignores_its_childrens_end_is_not_made_lighter() {
        let open = processes(&[(10, process("daemon", 1, 7, 0)), (11, process("child", 10, 40, 0))]);
        let close = processes(&[(10, process("daemon", 1, 57, 0))]);
        assert_eq!(others_ticks(&open, &close)["daemon"], 50);
    }

    #[test]
    fn a_number_that_was_used_again_is_another_process() {
        let open = processes(&[(10, process("old", 1, 700, 0))]);
        let mut new = process("new", 1, 30, 0);
        new.start_time_ticks = 99;
        assert_eq!(others_ticks(&open, &processes(&[(10, new)])), BTreeMap::from([("new".to_owned(), 30)]));
    }

    fn reading(at: Instant, stat: &str, others: &[(i32, ProcessTimes)]) -> MachineReading {
        MachineReading { at, times: parse_machine(stat).unwrap(), others: processes(others) }
    }

    #[test]
    fn the_kernels_share_is_what_nobody_else_used() {
        let at = Instant::now();
        let open =
            reading(at, "cpu  100 0 100 0 0 0 0 0\ncpu0\ncpu1\n", &[(9, process("chromium", 1, 10, 0))]);
        let close = reading(
            at + Duration::from_secs(10),
            "cpu  3 0 2 700 50 100 100 50\ncpu0\ncpu1\n",
            &[(9, process("chromium", 1, 110, 0)), (8, process("idle", 1, 0, 0))],
        );
        let usage = usage(&open, &close, 0.7, 100);
        // Of 20 CPU seconds 7.5 were idle and 0.5 stolen, whatever the sampled user and system time say.
        assert!((usage.busy_cores - 1.2).abs() < 1e-9);
        assert!((usage.interrupt_cores - 0.2).abs() < 1e-9);
        assert!((usage.steal_cores - 0.05).abs() < 1e-9);
        assert!((usage.kernel_cores - 0.4).abs() < 1e-9);
        assert_eq!(usage.top_other_processes, [TopProcess { name: "chromium".to_owned(), cpu_cores: 0.1 }]);
    }

    #[test]
    fn the_kernels_share_is_never_negative() {
        let at = Instant::now();
        let open = reading(at, "cpu  100 0 100 0 0 0 0 0\ncpu0\n", &[]);
        let close = reading(at + Duration::from_secs(1), "cpu  150 0 100 50 0 0 0 0\ncpu0\n", &[]);
        assert!(usage(&open, &close, 0.9, 100).kernel_cores.abs() < f64::EPSILON);
    }

    #[test]
    fn the_lab_and_what_it_started_are_no_others() {
        let own = std::process::id().cast_signed();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id().cast_signed();
        let inside = read(Path::new("/proc"), own).unwrap();
        let outside = read(Path::new("/proc"), pid).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let holds =
            |reading: &MachineReading, pid: i32| reading.others.keys().any(|(other, _)| *other == pid);
        assert!(!holds(&inside, own) && !holds(&inside, pid));
        assert!(holds(&outside, own) && !holds(&outside, pid));
        // The kernel's own threads are no other processes: they belong to its share.
        assert!(!holds(&outside, 2));
    }
}
