//! All processes of a component at one moment: a proxy may be two, an agent and the Envoy that it runs.
//!
//! A component with a control group is whatever is in that group; without one it is its process and all that descend from
//! it. A process that ends while it is read is left out: it uses nothing any more.

use super::process::{self, ProcessMemory, ProcessTimes, Switches};
use crate::cgroup::Cgroup;
use crate::process_table;
use std::collections::BTreeMap;
use std::path::Path;

/// What one process had used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProcessReading {
    /// Its CPU, and its name as the kernel has it.
    pub times: ProcessTimes,
    /// Its memory; none for a dead process that nobody has waited for.
    pub memory: ProcessMemory,
    /// Context switches of its threads.
    pub switches: BTreeMap<i32, Switches>,
}

/// Reads every process of a component, by number: the one with this number first.
#[must_use]
pub fn read(proc: &Path, pid: i32, cgroup: Option<&Cgroup>) -> BTreeMap<i32, ProcessReading> {
    let grouped = cgroup.and_then(|cgroup| cgroup.processes().ok()).filter(|pids| !pids.is_empty());
    let pids = grouped.unwrap_or_else(|| process_table::descendants(proc, pid));
    pids.into_iter().filter_map(|pid| Some((pid, reading(proc, pid)?))).collect()
}

fn reading(proc: &Path, pid: i32) -> Option<ProcessReading> {
    Some(ProcessReading {
        times: process::times(proc, pid).ok()?,
        memory: process::memory(proc, pid).unwrap_or_default(),
        switches: process::switches(proc, pid).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_component_is_its_process_and_all_below_it() {
        // The shell waits for a child of its own, which says that it is there.
        let mut shell = Command::new("sh")
            .args(["-c", "(echo there; exec sleep 60) & wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = shell.id().cast_signed();
        let mut said = [0; 6];
        std::io::Read::read_exact(&mut shell.stdout.take().unwrap(), &mut said).unwrap();
        let processes = read(Path::new("/proc"), pid, None);
        for child in processes.keys().filter(|child| **child != pid) {
            let child = rustix::process::Pid::from_raw(*child).unwrap();
            rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(processes.len(), 2, "{processes:?}");
        assert!(processes.values().all(|process| process.memory.resident_bytes > 0), "{processes:?}");
        assert!(read(Path::new("/proc"), pid, None).is_empty());
    }
}
