//! Labs that are up, for `meshmeter lab status`.

use super::access::Access;
use super::record::{PodNote, Record, load_access, load_pods};
use super::runtime_dir::entries;
use crate::Result;
use crate::sandbox::privileges::Privileges;
use crate::sandbox::process_table::{self, ProcessIdentity};
use procfs_core::FromRead as _;
use procfs_core::process::Status;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Serialize)]
pub struct LabStatus {
    pub id: String,
    pub purpose: String,
    pub started_at: String,
    /// If false, the lab is stale and its remains can be removed.
    pub running: bool,
    /// Includes the processes that hold the lab.
    pub processes: usize,
    pub pods: Vec<PodStatus>,
    pub directory: PathBuf,
    /// Absent for runs, and for labs that are still coming up.
    #[serde(flatten)]
    pub access: Option<Access>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PodStatus {
    pub name: String,
    pub address: Ipv4Addr,
    /// Prefix of commands that run in the pod's network.
    pub enter: Vec<String>,
    pub containers: Vec<ContainerStatus>,
    /// The same namespaces as in `enter`, for a process that joins them.
    #[serde(skip)]
    pub namespaces: PodNamespaces,
}

/// A pod's namespaces, as files of the lab's first process.
#[derive(Clone, Debug, Default)]
pub struct PodNamespaces {
    pub holder: Option<ProcessIdentity>,
    pub user: Option<PathBuf>,
    pub processes: PathBuf,
    pub network: PathBuf,
    pub mounts: PathBuf,
    own_mounts: bool,
}

impl PodNamespaces {
    fn new(pod: &PodNote, holder: ProcessIdentity, privileges: Privileges) -> Self {
        let file = |name: &str| PathBuf::from(format!("/proc/{}/{name}", holder.pid));
        let open = |number: i32| file(&format!("fd/{number}"));
        Self {
            holder: Some(holder),
            user: (privileges == Privileges::UserNamespace).then(|| file("ns/user")),
            processes: file("ns/pid"),
            network: open(pod.namespace_file),
            mounts: pod.mounts_file.map_or_else(|| file("ns/mnt"), open),
            own_mounts: pod.mounts_file.is_some(),
        }
    }

    /// An nsenter(1) command that uses the file that holds the namespace, so that it works for a pod without
    /// processes. An ordinary user must first enter the lab's user namespace to have rights over its
    /// networks. The pod's own mounts include its name files.
    fn nsenter(&self) -> Vec<String> {
        let user = self
            .user
            .iter()
            .flat_map(|user| [format!("--user={}", user.display()), "--preserve-credentials".to_owned()]);
        let network = format!("--net={}", self.network.display());
        let mounts = self.own_mounts.then(|| format!("--mount={}", self.mounts.display()));
        std::iter::once("nsenter".to_owned()).chain(user).chain([network]).chain(mounts).collect()
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct ContainerStatus {
    pub name: String,
    pub program: PathBuf,
    /// PID on the machine; absent if it has ended.
    pub pid: Option<i32>,
}

/// Labs of this user: those that are up, and remains of those that are not.
pub fn list() -> Result<Vec<LabStatus>> {
    let mut labs = Vec::new();
    for directory in entries() {
        match Record::load(&directory) {
            // Its lab is in another container that shares the directory; its processes are invisible here.
            Ok(record) if !record.is_of_our_pid_namespace() => {}
            Ok(record) => labs.push(status(record, directory, Path::new("/proc"))),
            // It was removed between listing and reading.
            Err(_) if !directory.exists() => {}
            Err(error) => return Err(error),
        }
    }
    labs.sort_by(|one, other| one.started_at.cmp(&other.started_at));
    Ok(labs)
}

/// Status of a lab as the machine's own proc mount shows it.
pub(crate) fn status(record: Record, directory: PathBuf, proc: &Path) -> LabStatus {
    let running = record.outer.is_alive(proc);
    let mut lab = LabStatus {
        id: record.id,
        purpose: record.purpose,
        started_at: record.started_at,
        running,
        processes: usize::from(running),
        pods: Vec::new(),
        access: None,
        directory,
    };
    // Pods end with the lab's first process, and so does access to them.
    if let Some(inner) = record.inner.filter(|inner| inner.is_alive(proc)) {
        let processes = processes_with(inner, proc);
        lab.processes += processes.len();
        let pods = load_pods(&lab.directory).into_values();
        lab.pods = pods.map(|pod| pod_status(pod, inner, record.privileges, &processes)).collect();
        lab.access = load_access(&lab.directory);
    }
    lab
}

fn pod_status(
    pod: PodNote,
    inner: ProcessIdentity,
    privileges: Privileges,
    processes: &BTreeMap<i32, i32>,
) -> PodStatus {
    let namespaces = PodNamespaces::new(&pod, inner, privileges);
    let enter = namespaces.nsenter();
    let containers = pod.containers.into_iter().map(|container| ContainerStatus {
        name: container.name,
        program: container.program,
        pid: i32::try_from(container.pid_in_lab).ok().and_then(|pid| processes.get(&pid)).copied(),
    });
    PodStatus { name: pod.name, address: pod.address, enter, containers: containers.collect(), namespaces }
}

/// Processes that share the lab's PID namespace: their PID there, and here.
fn processes_with(inner: ProcessIdentity, proc: &Path) -> BTreeMap<i32, i32> {
    let file = |pid: i32, name: &str| proc.join(pid.to_string()).join(name);
    let namespace_of = |pid: i32| fs::read_link(file(pid, "ns/pid")).ok();
    let Some(namespace) = namespace_of(inner.pid) else { return BTreeMap::new() };
    let pids = process_table::pids(proc).unwrap_or_default();
    pids.into_iter()
        .filter(|&pid| process_table::stat(proc, pid).is_ok_and(|stat| !process_table::is_dead(&stat)))
        .filter(|&pid| namespace_of(pid).as_ref() == Some(&namespace))
        .filter_map(|pid| {
            // The outermost namespace comes first.
            let pids = Status::from_file(file(pid, "status")).ok()?.nspid?;
            Some((*pids.last()?, pid))
        })
        .collect()
}
