//! The files of a lab's registry entry.

use super::access::Access;
use crate::Result;
use crate::sandbox::cgroup::Cgroup;
use crate::sandbox::privileges::Privileges;
use crate::sandbox::process_table::ProcessIdentity;
use crate::sandbox::subordinate::NoProxyUser;
use experiment::environment::ErrorContext as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const RECORD_FILE: &str = "lab.json";
const ACCESS_FILE: &str = "access.json";
const PODS_FOLDER: &str = "pods";
const OWN_PID_NAMESPACE: &str = "/proc/self/ns/pid";
const RECORD_SCHEMA: &str = "meshmeter.lab/1";

/// `lab.json`: the lab, and everything that could outlive its processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    schema: String,
    pub id: String,
    pub purpose: String,
    pub started_at: String,
    pub privileges: Privileges,
    /// PID namespace of the PIDs in this record.
    pid_namespace: PathBuf,
    /// The lab runs as long as this process. Inner processes may outlive it for a moment.
    pub outer: ProcessIdentity,
    /// The lab's first process, with its PID outside the lab; absent until it starts.
    pub inner: Option<ProcessIdentity>,
    pub cgroup_directories: Vec<PathBuf>,
    pub cgroup: Option<Cgroup>,
    pub no_cgroup_because: Option<String>,
    pub no_proxy_user: Option<NoProxyUser>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Removed {
    pub id: String,
    pub purpose: String,
    pub was_running: bool,
    /// Cgroups that were removed, except those that the lab removed itself when it ended.
    pub cgroups: Vec<PathBuf>,
    pub directory: PathBuf,
}

impl Record {
    /// The record of a lab that this process makes.
    pub(super) fn new(
        id: String,
        purpose: &str,
        privileges: Privileges,
        cgroups: &[Cgroup],
    ) -> io::Result<Self> {
        Ok(Self {
            schema: RECORD_SCHEMA.to_owned(),
            id,
            purpose: purpose.to_owned(),
            started_at: jiff::Timestamp::now().to_string(),
            privileges,
            pid_namespace: fs::read_link(OWN_PID_NAMESPACE)?,
            outer: ProcessIdentity::current()?,
            inner: None,
            cgroup_directories: cgroups.iter().flat_map(Cgroup::directories).map(Path::to_owned).collect(),
            cgroup: None,
            no_cgroup_because: None,
            no_proxy_user: None,
        })
    }

    pub fn load(directory: &Path) -> Result<Self> {
        let path = directory.join(RECORD_FILE);
        read_json(&path).context(format!("read {}", path.display()))
    }

    pub(super) fn save(&self, directory: &Path) -> Result<()> {
        let path = directory.join(RECORD_FILE);
        write_json(&path, self).context(format!("write {}", path.display()))
    }

    /// True if its PIDs mean the same processes to us. If a container shares the registry's directory with
    /// the machine, each side's labs would look dead to the other.
    pub fn is_of_our_pid_namespace(&self) -> bool {
        fs::read_link(OWN_PID_NAMESPACE).is_ok_and(|namespace| namespace == self.pid_namespace)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PodNote {
    pub name: String,
    pub address: Ipv4Addr,
    /// File descriptor that the lab's first process holds for the network namespace.
    pub namespace_file: RawFd,
    /// File descriptor of the pod's mount namespace, if it is not the lab's.
    pub mounts_file: Option<RawFd>,
    pub containers: Vec<ContainerNote>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContainerNote {
    pub name: String,
    pub pid_in_lab: u32,
    pub program: PathBuf,
}

/// Writes a pod's note to the lab's directory, or removes it if the pod is gone.
pub(crate) fn save_pod(directory: &Path, number: u16, pod: Option<&PodNote>) -> Result<()> {
    let pods = directory.join(PODS_FOLDER);
    let path = pods.join(format!("{number}.json"));
    let saved = match pod {
        Some(pod) => fs::create_dir_all(&pods).and_then(|()| write_json(&path, pod)),
        None => fs::remove_file(&path),
    };
    saved.context(format!("write {}", path.display()))
}

/// Notes of a lab's pods that are written so far, by number.
pub(super) fn load_pods(directory: &Path) -> BTreeMap<u16, PodNote> {
    let pod = |entry: fs::DirEntry| {
        let number = entry.path().file_stem()?.to_str()?.parse().ok()?;
        Some((number, read_json(&entry.path()).ok()?))
    };
    let entries = fs::read_dir(directory.join(PODS_FOLDER)).into_iter().flatten().flatten();
    entries.filter_map(pod).collect()
}

pub(crate) fn save_access(directory: &Path, access: &Access) -> Result<()> {
    let path = directory.join(ACCESS_FILE);
    write_json(&path, access).context(format!("write {}", path.display()))
}

/// Access to the lab, if it is written already.
pub(super) fn load_access(directory: &Path) -> Option<Access> {
    read_json(&directory.join(ACCESS_FILE)).ok()
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Writes a temporary file and renames it, so that a reader sees either the old or the new content.
fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let new = path.with_extension("json.new");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&serde_json::to_vec_pretty(value)?)?;
    drop(file);
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_round_trips() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let record = Record::new("abc234".into(), "a test", Privileges::Root, &[]);
        let record = record.expect("proc is mounted");
        record.save(folder.path()).expect("it is writable");
        let loaded = Record::load(folder.path()).expect("it was written");
        assert_eq!((loaded.id.as_str(), loaded.outer), ("abc234", record.outer));
        assert!(loaded.outer.is_alive(Path::new("/proc")) && loaded.is_of_our_pid_namespace());
    }

    #[test]
    fn invalid_record_is_error_with_file_name() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join(RECORD_FILE), "{}").expect("it is writable");
        let error = Record::load(folder.path()).expect_err("fields are missing");
        assert!(error.to_string().ends_with(RECORD_FILE), "{error}");
    }
}
