//! What labs are up, for `meshmeter lab status`.

use super::access::Access;
use super::record::{Contents, PodNote, Record};
use super::runtime_dir::{self, entries};
use crate::sandbox::privileges::Privileges;
use crate::sandbox::process_table::{self, ProcessIdentity};
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
    /// What it is held open for, and how to use it; absent of runs, and of labs that are still being brought up.
    #[serde(flatten)]
    pub access: Option<Access>,
}

/// A pod of a lab.
#[derive(Clone, Debug, Serialize)]
pub struct PodStatus {
    /// Its name.
    pub name: String,
    /// Its address within the lab.
    pub address: Ipv4Addr,
    /// How to run a command in its network: this, and the command after it.
    pub enter: Vec<String>,
    /// Its processes.
    pub containers: Vec<ContainerStatus>,
    /// The same as `enter` for [`crate::sandbox::exec`].
    #[serde(skip)]
    pub namespaces: PodNamespaces,
}

/// Where the namespaces of a pod are found, as files of the lab's first process.
#[derive(Clone, Debug, Default)]
pub struct PodNamespaces {
    /// The process that they are to be looked for in; absent where it has ended.
    pub(crate) holder: Option<ProcessIdentity>,
    /// The user namespace, where the lab has one of its own.
    pub(crate) user: Option<PathBuf>,
    /// The numbers of its processes.
    pub(crate) processes: PathBuf,
    pub(crate) network: PathBuf,
    pub(crate) mounts: PathBuf,
    /// Whether the mounts are not the whole lab's.
    own_mounts: bool,
}

impl PodNamespaces {
    fn of(pod: &PodNote, holder: ProcessIdentity, privileges: Privileges) -> Self {
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

    /// nsenter(1) by the file that holds the namespace, so that it works for a pod without processes too. An ordinary user
    /// must enter the lab's user namespace first, to have rights over its networks. With the pod's own mounts come its
    /// names.
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
    for folder in runtime_dir::existing() {
        for directory in entries(&folder) {
            match Record::load(&directory) {
                // Of another container that shares the folder with us: nothing of it can be seen from here.
                Ok(record) if !record.is_of_our_pid_namespace() => {}
                Ok(record) => labs.push(status(record, directory, Path::new("/proc"))),
                // It removed itself between our looking and our reading.
                Err(_) if !directory.exists() => {}
                Err(error) => return Err(error),
            }
        }
    }
    labs.sort_by(|one, other| one.started_at.cmp(&other.started_at));
    Ok(labs)
}

/// A lab as this mount of proc shows it, which must be the machine's.
pub(crate) fn status(record: Record, directory: PathBuf, proc: &Path) -> LabStatus {
    let inner = record.inner.filter(|inner| inner.is_alive(proc));
    let running = record.is_running(proc);
    let processes = inner.map(|inner| processes_with(inner, proc)).unwrap_or_default();
    // Pods go with the lab's first process, and so does what leads to them.
    let contents = inner.map(|_| Contents::load(&directory)).unwrap_or_default();
    let access = contents.access;
    let pods = inner.map(|inner| {
        let pods = contents.pods.into_values();
        pods.map(|pod| pod_status(pod, inner, record.privileges, &processes)).collect()
    });
    LabStatus {
        id: record.id,
        purpose: record.purpose,
        started_at: record.started_at,
        running,
        processes: processes.len() + usize::from(running),
        pods: pods.unwrap_or_default(),
        directory,
        access,
    }
}

fn pod_status(
    pod: PodNote,
    inner: ProcessIdentity,
    privileges: Privileges,
    processes: &BTreeMap<i32, i32>,
) -> PodStatus {
    let namespaces = PodNamespaces::of(&pod, inner, privileges);
    let enter = namespaces.nsenter();
    let containers = pod.containers.into_iter().map(|container| ContainerStatus {
        name: container.name,
        program: container.program,
        pid: i32::try_from(container.pid_in_lab).ok().and_then(|pid| processes.get(&pid)).copied(),
    });
    PodStatus { name: pod.name, address: pod.address, enter, containers: containers.collect(), namespaces }
}

/// The processes that share a PID namespace with the lab's first: their number within to their number here.
fn processes_with(inner: ProcessIdentity, proc: &Path) -> BTreeMap<i32, i32> {
    let file = |pid: i32, name: &str| proc.join(pid.to_string()).join(name);
    let namespace_of = |pid: i32| fs::read_link(file(pid, "ns/pid")).ok();
    let Some(namespace) = namespace_of(inner.pid) else { return BTreeMap::new() };
    let pids = process_table::pids(proc).unwrap_or_default();
    pids.into_iter()
        .filter(|&pid| process_table::stat(proc, pid).is_ok_and(|stat| !stat.is_dead()))
        .filter(|&pid| namespace_of(pid).as_ref() == Some(&namespace))
        .filter_map(|pid| {
            let status = fs::read_to_string(file(pid, "status")).ok()?;
            Some((*process_table::parse_namespace_pids(&status)?.last()?, pid))
        })
        .collect()
}
