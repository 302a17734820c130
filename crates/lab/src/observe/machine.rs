//! Readings of the machine as a whole: `/proc/stat`, and every process outside the lab. If this process may use only some CPUs,
//! by its affinity or its cpuset, these are the machine.

use super::host::cpu_ranges;
use super::host_proc::HostProc;
use super::process::{now, ticks};
use crate::sandbox::process_table::{self, Stat};
use experiment::environment::{MachineSnapshot, OtherProcess, ProcessId};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// CPU times of the machine, without processes.
pub fn read_times(proc: &Path) -> io::Result<MachineSnapshot> {
    let stat = fs::read_to_string(proc.join("stat"))?;
    let at = now();
    let machine = parse_machine(&stat, &usable_cpus()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}/stat is malformed", proc.display()))
    })?;
    Ok(MachineSnapshot { at, ..machine })
}

/// Numbers of the CPUs that this process may use, and all that it starts; none if the kernel does not report them.
fn usable_cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// The times of the usable CPUs; of all if none of them is named.
pub(super) fn parse_machine(stat: &str, usable: &[usize]) -> Option<MachineSnapshot> {
    let lines = stat.lines().filter_map(|line| line.strip_prefix("cpu")?.split_once(' '));
    let (totals, cpus): (Vec<_>, Vec<_>) = lines.partition(|(number, _)| number.is_empty());
    let is_usable = |(number, _): &&(&str, &str)| number.parse().is_ok_and(|number| usable.contains(&number));
    let own: Vec<_> = cpus.iter().filter(is_usable).copied().collect();
    let has_other_cpus = !own.is_empty() && own.len() < cpus.len();
    // The total is exact: times of one CPU are whole ticks.
    let counted = if has_other_cpus { &own } else { &totals };
    let mut machine = MachineSnapshot {
        cpus: if has_other_cpus { own.len() } else { cpus.len() },
        has_other_cpus,
        ..Default::default()
    };
    for (_, fields) in counted {
        let fields: Vec<u64> =
            fields.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        let [_user, _nice, _system, idle, iowait, irq, softirq, steal, ..] = fields[..] else { return None };
        machine.idle = machine.idle.saturating_add(ticks(idle.saturating_add(iowait)));
        machine.interrupt = machine.interrupt.saturating_add(ticks(irq.saturating_add(softirq)));
        machine.steal = machine.steal.saturating_add(ticks(steal));
    }
    (!counted.is_empty()).then_some(machine)
}

/// True if a process may use one of these CPUs; unknown counts as such.
fn may_use(proc: &Path, pid: i32, usable: &[usize]) -> bool {
    let status = fs::read(proc.join(pid.to_string()).join("status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.is_none_or(|list| cpu_ranges(list).any(|range| usable.iter().any(|cpu| range.contains(cpu))))
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
    let mut others: BTreeMap<ProcessId, OtherProcess> = others.map(other_process).collect();
    if machine.has_other_cpus {
        let usable = usable_cpus();
        for (id, process) in &mut others {
            process.is_elsewhere = !may_use(&host.path, id.pid, &usable);
        }
    }
    Ok(MachineSnapshot { others, ..machine })
}

pub(super) fn other_process((pid, stat): (i32, Stat)) -> (ProcessId, OtherProcess) {
    let process = OtherProcess {
        name: stat.comm,
        parent_pid: stat.ppid,
        cpu: ticks(stat.utime.saturating_add(stat.stime)),
        ended_children: ticks(stat.cutime.saturating_add(stat.cstime).unsigned_abs()),
        is_elsewhere: false,
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
        let machine = parse_machine(STAT, &[0, 1]).unwrap();
        assert_eq!(machine.cpus, 2);
        assert_eq!(machine.idle, ticks(291_471 + 1467));
        assert_eq!((machine.interrupt, machine.steal), (ticks(147), ticks(19)));
        assert_eq!(parse_machine(STAT, &[]), Some(machine), "the kernel does not report which are usable");
        assert_eq!(parse_machine("cpu  1 2 3\n", &[]), None);
    }

    #[test]
    fn restricted_process_has_the_machine_that_it_may_use() {
        let machine = parse_machine(STAT, &[1, 7]).unwrap();
        assert_eq!((machine.cpus, machine.has_other_cpus), (1, true));
        assert_eq!(machine.idle, ticks(140_286 + 1264));
        assert_eq!((machine.interrupt, machine.steal), (ticks(124), ticks(14)));
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("9")).unwrap();
        fs::write(folder.path().join("9/status"), "Name:\tcc\nCpus_allowed_list:\t0,2-5\n").unwrap();
        for (usable, may) in [(&[1, 7][..], false), (&[0], true), (&[1, 4], true)] {
            assert_eq!(may_use(folder.path(), 9, usable), may, "{usable:?}");
        }
        assert!(may_use(folder.path(), 10, &[1]), "it has ended");
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
