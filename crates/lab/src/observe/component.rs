//! Readings of one component.
//!
//! If the component has a cgroup, CPU comes from there: exact, with all processes in it, ended ones included.
//! Otherwise it comes from `/proc`, which counts in clock ticks. A component with a cgroup is every process
//! in it. Without one it is its process and all descendants. A process that ends while it is read is left
//! out.

use super::process::{self, now, ticks};
use crate::sandbox::cgroup::Cgroup;
use crate::sandbox::interface::Interface;
use crate::sandbox::process_table;
use experiment::environment::{ComponentMemory, ComponentSnapshot, CpuTimes};
use results::Role;
use std::io;
use std::path::Path;

#[derive(Clone, Debug)]
pub struct Watched {
    pub name: String,
    pub role: Role,
    pub pod: String,
    /// PID in our PID namespace.
    pub pid: i32,
    pub cgroup: Option<Cgroup>,
    /// Present for the component nearest to the pod's network.
    pub interface: Option<Interface>,
}

impl Watched {
    /// Reads what belongs to the window: CPU first, then traffic and throttling.
    pub(super) fn read_window(&self) -> io::Result<ComponentSnapshot> {
        let cpu = self.read_cpu()?;
        let cpu_source = self.cgroup.as_ref().map(|cgroup| format!("cgroup-{}", cgroup.version));
        Ok(ComponentSnapshot {
            pod: Some(self.pod.clone()),
            cpu_source: cpu_source.unwrap_or_else(|| "proc".to_owned()),
            network: self.interface.as_ref().and_then(Interface::bytes),
            throttling: self.cgroup.as_ref().and_then(|cgroup| cgroup.throttling().ok()),
            ..cpu
        })
    }

    /// CPU and memory alone, for readings within the window.
    pub(super) fn read_usage(&self) -> io::Result<ComponentSnapshot> {
        Ok(ComponentSnapshot { memory: self.memory(), ..self.read_cpu()? })
    }

    fn read_cpu(&self) -> io::Result<ComponentSnapshot> {
        let cpu = match &self.cgroup {
            Some(cgroup) => cgroup.cpu_usage()?,
            None => process_cpu(self.pid)?,
        };
        Ok(ComponentSnapshot { cpu, ..ComponentSnapshot::new(&self.name, self.role, now()) })
    }

    pub(super) fn read_processes(&self, snapshot: &mut ComponentSnapshot) {
        let proc = Path::new("/proc");
        let pids = self.pids().into_iter();
        snapshot.processes = pids.filter_map(|pid| Some((pid, process::read(proc, pid)?))).collect();
        let memory = snapshot.processes.values();
        snapshot.memory = self.sum_memory(
            memory.map(|process| (process.memory_resident_bytes, process.memory_anonymous_bytes)),
        );
    }

    pub fn memory(&self) -> ComponentMemory {
        self.sum_memory(self.pids().into_iter().map(|pid| process::memory(Path::new("/proc"), pid)))
    }

    pub(crate) fn pids(&self) -> Vec<i32> {
        let grouped = self.cgroup.as_ref().and_then(|cgroup| cgroup.processes().ok());
        let grouped = grouped.filter(|pids| !pids.is_empty());
        grouped.unwrap_or_else(|| process_table::descendants(Path::new("/proc"), self.pid))
    }

    /// Sums memory. `processes` are resident and anonymous bytes of each, for groups without memory counters
    /// (version 2, not delegated).
    fn sum_memory(&self, processes: impl Iterator<Item = (u64, u64)>) -> ComponentMemory {
        let group = self.cgroup.as_ref().and_then(|cgroup| cgroup.memory().ok()).unwrap_or_default();
        let (resident, anonymous) =
            processes.fold((0, 0), |sum, process| (sum.0 + process.0, sum.1 + process.1));
        let some = |bytes: u64| Some(bytes).filter(|bytes| *bytes > 0);
        ComponentMemory {
            resident_bytes: some(resident),
            anonymous_bytes: group.anonymous_bytes.or(some(anonymous)),
            ..group
        }
    }
}

/// CPU time of a process and its descendants, ended children included. Returns an error if the process does
/// not exist.
fn process_cpu(pid: i32) -> io::Result<CpuTimes> {
    let proc = Path::new("/proc");
    process_table::stat(proc, pid)?;
    let mut cpu = CpuTimes::default();
    let pids = process_table::descendants(proc, pid);
    for stat in pids.into_iter().filter_map(|pid| process_table::stat(proc, pid).ok()) {
        cpu.user += ticks(stat.utime + stat.cutime.unsigned_abs());
        cpu.system += ticks(stat.stime + stat.cstime.unsigned_abs());
    }
    Ok(CpuTimes { total: cpu.user + cpu.system, ..cpu })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    pub(crate) fn watched(pid: u32) -> Watched {
        Watched {
            name: "server".to_owned(),
            role: Role::App,
            pod: "server".to_owned(),
            pid: pid.cast_signed(),
            cgroup: None,
            interface: None,
        }
    }

    #[test]
    fn component_includes_descendant_processes() {
        // The shell prints once its own child exists, then waits for it.
        let mut shell = Command::new("sh")
            .args(["-c", "(echo there; exec sleep 60) & wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let watched = watched(shell.id());
        let mut said = [0; 6];
        std::io::Read::read_exact(&mut shell.stdout.take().unwrap(), &mut said).unwrap();
        let mut snapshot = watched.read_window().unwrap();
        watched.read_processes(&mut snapshot);
        for child in snapshot.processes.keys().filter(|child| **child != watched.pid) {
            let child = rustix::process::Pid::from_raw(*child).unwrap();
            rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        let processes = snapshot.processes;
        assert_eq!(processes.len(), 2, "{processes:?}");
        assert!(processes.values().all(|process| process.memory_resident_bytes > 0), "{processes:?}");
        assert!(snapshot.memory.bytes() > Some(100_000));
    }

    #[test]
    fn reading_ended_component_is_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(watched(child.id()).read_window().is_err());
        assert_eq!(watched(child.id()).memory(), ComponentMemory::default());
    }
}
