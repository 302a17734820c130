//! What labs are up, for `meshmeter lab status`.

use super::down::entries;
use super::{Contents, PodNote, Record, place};
use crate::process_table::{self, ProcessIdentity};
use experiment::environment::EnvironmentError;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// A lab of this user.
#[derive(Clone, Debug, Serialize)]
pub struct LabStatus {
    /// Its name.
    pub id: String,
    /// What it is for.
    pub purpose: String,
    /// When it was made, RFC 3339.
    pub started_at: String,
    /// Whether its processes run; where not, it is stale: its remains can be removed.
    pub running: bool,
    /// How many processes it has, those that hold it included.
    pub processes: usize,
    /// Its pods.
    pub pods: Vec<PodStatus>,
    /// Its folder.
    pub directory: PathBuf,
}

/// A pod of a lab.
#[derive(Clone, Debug, Serialize)]
pub struct PodStatus {
    /// Its name.
    pub name: String,
    /// Its address within the lab.
    pub address: Ipv4Addr,
    /// Its processes.
    pub containers: Vec<ContainerStatus>,
}

/// A process of a pod.
#[derive(Clone, Debug, Serialize)]
pub struct ContainerStatus {
    /// Its name within the pod.
    pub name: String,
    /// What it runs.
    pub program: PathBuf,
    /// Its number on the machine; absent where it has ended.
    pub pid: Option<i32>,
}

/// The labs of this user, those that are up and those of which only remains are left.
///
/// # Errors
/// Where an entry cannot be read.
pub fn list() -> Result<Vec<LabStatus>, EnvironmentError> {
    let mut labs = Vec::new();
    for folder in place::existing() {
        for directory in entries(&folder) {
            match Record::load(&directory) {
                Ok(record) => labs.push(status(record, directory)),
                // It removed itself between our looking and our reading.
                Err(_) if !directory.exists() => {}
                Err(error) => return Err(error),
            }
        }
    }
    labs.sort_by(|one, other| one.started_at.cmp(&other.started_at));
    Ok(labs)
}

fn status(record: Record, directory: PathBuf) -> LabStatus {
    let running = record.is_running();
    let processes = record.inner.filter(|_| running).map(processes_with).unwrap_or_default();
    let pods = if running { Contents::load(&directory).pods } else { BTreeMap::new() };
    LabStatus {
        id: record.id,
        purpose: record.purpose,
        started_at: record.started_at,
        running,
        processes: processes.len() + usize::from(record.outer.is_alive(Path::new("/proc"))),
        pods: pods.into_values().map(|pod| pod_status(pod, &processes)).collect(),
        directory,
    }
}

fn pod_status(pod: PodNote, processes: &BTreeMap<i32, i32>) -> PodStatus {
    let containers = pod.containers.into_iter().map(|container| ContainerStatus {
        name: container.name,
        program: container.program,
        pid: i32::try_from(container.pid_in_lab).ok().and_then(|pid| processes.get(&pid)).copied(),
    });
    PodStatus { name: pod.name, address: pod.address, containers: containers.collect() }
}

/// The processes that share a PID namespace with the lab's first: their number within to their number here.
fn processes_with(inner: ProcessIdentity) -> BTreeMap<i32, i32> {
    let namespace_of = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let Some(namespace) = namespace_of(inner.pid) else { return BTreeMap::new() };
    let proc = Path::new("/proc");
    let pids = process_table::pids(proc).unwrap_or_default();
    pids.into_iter()
        .filter(|&pid| process_table::stat(proc, pid).is_ok_and(|stat| !stat.is_dead()))
        .filter(|&pid| namespace_of(pid).as_ref() == Some(&namespace))
        .filter_map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            Some((*process_table::parse_namespace_pids(&status)?.last()?, pid))
        })
        .collect()
}
