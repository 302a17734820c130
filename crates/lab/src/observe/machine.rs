//! Readings of the machine as a whole: `/proc/stat`, and every process outside the lab.

use super::host_proc::HostProc;
use super::process::{now, ticks};
use crate::sandbox::process_table::{self, Stat};
use experiment::environment::{MachineSnapshot, OtherProcess, ProcessId};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// CPU times of the machine, without processes.
pub fn read_times(proc: &Path) -> io::Result<MachineSnapshot> {
    let stat = fs::read_to_string(proc.join("stat"))?;
    let at = now();
    let machine = parse_machine(&stat).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}/stat is malformed", proc.display()))
    })?;
    Ok(MachineSnapshot { at, ..machine })
}

pub(super) fn parse_machine(stat: &str) -> Option<MachineSnapshot> {
    let total = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = total.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let [_user, _nice, _system, idle, iowait, irq, softirq, steal, ..] = fields[..] else { return None };
    let is_cpu = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    Some(MachineSnapshot {
        idle: ticks(idle.saturating_add(iowait)),
        interrupt: ticks(irq.saturating_add(softirq)),
        steal: ticks(steal),
        cpus: stat.lines().filter(is_cpu).count(),
        ..MachineSnapshot::default()
    })
}

/// The machine with its processes, except the lab's own: its topmost process and all descendants.
pub(super) fn read(host: &HostProc) -> io::Result<MachineSnapshot> {
    let machine = read_times(&host.path)?;
    // A process may end between being listed and being read.
    let pids = process_table::pids(&host.path)?.into_iter();
    let stats = pids.filter_map(|pid| Some((pid, process_table::stat(&host.path, pid).ok()?)));
    let processes: BTreeMap<i32, Stat> = stats.collect();
    let lab = descendants(&processes, host.lab_root);
    let others = processes
        .into_iter()
        .filter(|(pid, stat)| !process_table::is_kernel_thread(stat) && !lab.contains(pid));
    Ok(MachineSnapshot { others: others.map(other_process).collect(), ..machine })
}

pub(super) fn other_process((pid, stat): (i32, Stat)) -> (ProcessId, OtherProcess) {
    let process = OtherProcess {
        name: stat.comm,
        parent_pid: stat.ppid,
        cpu: ticks(stat.utime.saturating_add(stat.stime)),
        ended_children: ticks(stat.cutime.saturating_add(stat.cstime).unsigned_abs()),
    };
    (ProcessId { pid, started: ticks(stat.starttime) }, process)
}

fn descendants(processes: &BTreeMap<i32, Stat>, root: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::from([root]);
    loop {
        let is_new = |pid: &i32, stat: &Stat| found.contains(&stat.ppid) && !found.contains(pid);
        let more: Vec<i32> =
            processes.iter().filter(|(pid, stat)| is_new(pid, stat)).map(|(pid, _)| *pid).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  59749 5611 10674 291471 1467 7 140 19 3 0\n\
                        cpu0 25624 2634 4870 151185 202 0 16 5 0 0\n\
                        cpu1 34124 2976 5804 140286 1264 0 124 14 0 0\nintr 686507 0\nctxt 5\n";

    #[test]
    fn proc_stat_totals_are_read_and_cpus_counted() {
        let machine = parse_machine(STAT).unwrap();
        assert_eq!(machine.cpus, 2);
        assert_eq!(machine.idle, ticks(291_471 + 1467));
        assert_eq!((machine.interrupt, machine.steal), (ticks(147), ticks(19)));
        assert_eq!(parse_machine("cpu  1 2 3\n"), None);
    }

    #[test]
    fn lab_and_its_descendants_are_not_other_processes() {
        let own = std::process::id().cast_signed();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id().cast_signed();
        let host = |lab_root| HostProc { path: "/proc".into(), lab_root };
        let inside = read(&host(own)).unwrap();
        let outside = read(&host(pid)).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let holds = |machine: &MachineSnapshot, pid: i32| machine.others.keys().any(|id| id.pid == pid);
        assert!(!holds(&inside, own) && !holds(&inside, pid));
        assert!(holds(&outside, own) && !holds(&outside, pid));
        // Kernel threads count towards the kernel.
        assert!(!holds(&outside, 2));
    }
}
