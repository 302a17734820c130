//! The files of a lab's registry entry.

use super::access::Access;
use crate::Result;
use crate::sandbox::cgroup::LabCgroup;
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
    pub outer: ProcessIdentity,
    /// The lab's first process, with its PID outside the lab; absent until it starts.
    pub inner: Option<ProcessIdentity>,
    pub cgroup_directories: Vec<PathBuf>,
    pub cgroup: Option<LabCgroup>,
    pub no_cgroup_because: Option<String>,
    #[serde(default)]
    pub no_proxy_user: Option<NoProxyUser>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Removed {
    pub id: String,
    pub purpose: String,
    pub was_running: bool,
    /// Cgroups that were removed, except those that the lab removed itself when it ended.
    pub cgroups: Vec<PathBuf>,
    pub directory: PathBuf,
}

impl Record {
    pub(crate) fn new(
        id: String,
        purpose: &str,
        outer: ProcessIdentity,
        privileges: Privileges,
    ) -> io::Result<Self> {
        Ok(Self {
            schema: RECORD_SCHEMA.to_owned(),
            id,
            purpose: purpose.to_owned(),
            started_at: jiff::Timestamp::now().to_string(),
            privileges,
            pid_namespace: fs::read_link(OWN_PID_NAMESPACE)?,
            outer,
            inner: None,
            cgroup_directories: Vec::new(),
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

    /// True if it runs, as seen in this proc mount. Inner processes may outlive the outer one for a moment.
    pub fn is_running(&self, proc: &Path) -> bool {
        self.outer.is_alive(proc)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Pods by number.
    pub pods: BTreeMap<u16, PodNote>,
    pub access: Option<Access>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PodNote {
    pub name: String,
    pub address: Ipv4Addr,
    /// File descriptor that the lab's first process holds for the network namespace.
    pub namespace_file: RawFd,
    /// File descriptor of the pod's mount namespace, if it is not the lab's.
    #[serde(default)]
    pub mounts_file: Option<RawFd>,
    pub containers: Vec<ContainerNote>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContainerNote {
    pub name: String,
    pub pid_in_lab: u32,
    pub program: PathBuf,
}

impl Contents {
    /// Writes a pod's note to the lab's directory, or removes it if the pod is gone.
    pub(crate) fn save_pod(&self, directory: &Path, number: u16) -> Result<()> {
        let pods = directory.join(PODS_FOLDER);
        let path = pods.join(format!("{number}.json"));
        let saved = match self.pods.get(&number) {
            Some(pod) => fs::create_dir_all(&pods).and_then(|()| write_json(&path, pod)),
            None => fs::remove_file(&path),
        };
        saved.context(format!("write {}", path.display()))
    }

    pub(crate) fn save_access(&self, directory: &Path) -> Result<()> {
        let path = directory.join(ACCESS_FILE);
        write_json(&path, &self.access).context(format!("write {}", path.display()))
    }

    /// Reads a lab's directory. Files that are not written yet are absent.
    pub(super) fn load(directory: &Path) -> Self {
        let pod = |entry: fs::DirEntry| {
            let number = entry.path().file_stem()?.to_str()?.parse().ok()?;
            Some((number, read_json(&entry.path()).ok()?))
        };
        let entries = fs::read_dir(directory.join(PODS_FOLDER));
        Self {
            pods: entries.map(|pods| pods.flatten().filter_map(pod).collect()).unwrap_or_default(),
            access: read_json(&directory.join(ACCESS_FILE)).unwrap_or_default(),
        }
    }
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
        let outer = ProcessIdentity::current().expect("proc is mounted");
        let record =
            Record::new("abc234".into(), "a test", outer, Privileges::Root).expect("proc is mounted");
        record.save(folder.path()).expect("it is writable");
        let loaded = Record::load(folder.path()).expect("it was written");
        assert_eq!((loaded.id.as_str(), loaded.outer), ("abc234", outer));
        assert!(loaded.is_running(Path::new("/proc")) && loaded.is_of_our_pid_namespace());
    }

    #[test]
    fn invalid_record_is_error_with_file_name() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join(RECORD_FILE), "{}").expect("it is writable");
        let error = Record::load(folder.path()).expect_err("fields are missing");
        assert!(error.to_string().ends_with(RECORD_FILE), "{error}");
    }
}
