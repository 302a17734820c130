//! Creates and removes a lab's cgroups: `…/meshmeter/<lab>/<pod>/<container>`.

use super::group::{Cgroup, CgroupDir};
use super::hierarchy;
use super::version::Version;
use crate::Result;
use crate::sandbox::registry::runtime_dir::retry_if_removed;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use mesh::wait::wait_for;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ALL_LABS: &str = "meshmeter";

/// A cgroup stays busy until the kernel has reaped its last killed process.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(5);
const V2_CONTROLLERS: [&str; 2] = ["cpu", "memory"];

/// Possible locations of a lab's cgroups. They are recorded before the first cgroup is created.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    v1: Option<Vec<CgroupDir>>,
    v2: Vec<PathBuf>,
}

impl Plan {
    pub fn read(lab_id: &str) -> io::Result<Self> {
        let mounts = hierarchy::parse_mounts(&fs::read_to_string("/proc/self/mountinfo")?);
        let memberships = match fs::read_to_string("/proc/self/cgroup") {
            Ok(text) => hierarchy::parse_memberships(&text),
            // The kernel has no cgroup support.
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let of_lab = |directory: &Path| directory.join(ALL_LABS).join(lab_id);
        let v1 = hierarchy::v1_homes(&mounts, &memberships).map(|homes| {
            homes.into_iter().map(|home| CgroupDir { directory: of_lab(&home.directory), ..home }).collect()
        });
        let v2 = hierarchy::v2_candidates(&mounts, &memberships).iter().map(|home| of_lab(home)).collect();
        Ok(Self { v1, v2 })
    }

    pub fn directories(&self) -> Vec<PathBuf> {
        let v1 = self.v1.iter().flatten().map(|home| home.directory.clone());
        v1.chain(self.v2.iter().cloned()).collect()
    }

    /// Creates the lab's cgroup in version 1 if the controllers are mounted there, else in version 2. The
    /// kernel releases the locks when their process ends: cgroups without a lock are left over.
    pub fn establish(&self) -> Result<(LabCgroup, Vec<File>), String> {
        let mut tries_left = 8;
        loop {
            let cgroup = match &self.v1 {
                Some(homes) => establish_v1(homes),
                None => establish_v2(&self.v2, &V2_CONTROLLERS),
            }?;
            tries_left -= 1;
            match cgroup.lock() {
                Ok(locks) => return Ok((cgroup, locks)),
                // Another lab that is starting removed them as left over before they were locked.
                Err(error) if error.kind() == ErrorKind::NotFound && tries_left > 0 => {}
                Err(error) => return Err(format!("lock the lab's cgroups: {error}")),
            }
        }
    }

    /// Removes cgroups of killed labs. These may be without a registry entry: from a test, or from a
    /// container that is gone.
    pub fn remove_remains(&self) {
        for all_labs in self.directories().iter().filter_map(|directory| directory.parent()) {
            for lab in fs::read_dir(all_labs).into_iter().flatten().flatten() {
                let Ok(file) = File::open(lab.path()) else { continue };
                if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                    // Fails while a process is left; the next start tries again.
                    let _ = remove(&lab.path());
                }
            }
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct LabCgroup {
    pub version: Version,
    branches: Vec<CgroupDir>,
    /// Version 2: controllers enabled for child cgroups.
    enabled: Vec<String>,
}

fn establish_v1(homes: &[CgroupDir]) -> Result<LabCgroup, String> {
    for home in homes {
        if let Err(error) = create_all(&home.directory) {
            for made in homes {
                // Created a moment ago and empty; `meshmeter lab down` would find the rest.
                let _ = remove(&made.directory);
            }
            return Err(format!("{}: {error}", home.directory.display()));
        }
    }
    Ok(LabCgroup { version: Version::V1, branches: homes.to_vec(), enabled: Vec::new() })
}

/// Creates the lab's cgroup in the first of these directories in which all `wanted` controllers are
/// available.
pub fn establish_v2(candidates: &[PathBuf], wanted: &[&str]) -> Result<LabCgroup, String> {
    let mut reason = "no control groups are mounted".to_owned();
    for directory in candidates {
        match establish_v2_at(directory, wanted) {
            Ok(()) => {
                let branches = vec![CgroupDir { directory: directory.clone(), controllers: Vec::new() }];
                let enabled = wanted.iter().map(|&name| name.to_owned()).collect();
                return Ok(LabCgroup { version: Version::V2, branches, enabled });
            }
            Err(error) => {
                let _ = remove(directory);
                reason = format!("{}: {error}", directory.display());
            }
        }
    }
    Err(reason)
}

fn establish_v2_at(directory: &Path, wanted: &[&str]) -> io::Result<()> {
    let all_labs = directory.parent().unwrap_or(directory);
    let home = all_labs.parent().unwrap_or(all_labs);
    enable(home, wanted)?;
    create_all(all_labs)?;
    enable(all_labs, wanted)?;
    create_all(directory)?;
    enable(directory, wanted)
}

fn enable(group: &Path, wanted: &[&str]) -> io::Result<()> {
    let there = fs::read_to_string(group.join("cgroup.controllers"))?;
    for &controller in wanted {
        if !there.split_ascii_whitespace().any(|name| name == controller) {
            return Err(io::Error::other(format!("the {controller} controller is not available here")));
        }
    }
    let control = group.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&control)?;
    for &controller in wanted {
        if !enabled.split_ascii_whitespace().any(|name| name == controller) {
            fs::write(&control, format!("+{controller}"))?;
        }
    }
    Ok(())
}

fn create_all(directory: &Path) -> io::Result<()> {
    retry_if_removed(|| fs::create_dir_all(directory))
}

impl LabCgroup {
    fn lock(&self) -> io::Result<Vec<File>> {
        let lock = |branch: &CgroupDir| {
            let file = File::open(&branch.directory)?;
            flock(&file, FlockOperation::LockShared)?;
            fs::metadata(&branch.directory).map(|_| file)
        };
        self.branches.iter().map(lock).collect()
    }

    pub fn create(&self, pod: &str, container: &str) -> Result<Cgroup> {
        let operation = format!("make the cgroup of {pod}/{container}");
        let wanted: Vec<&str> = self.enabled.iter().map(String::as_str).collect();
        let mut branches = Vec::new();
        for branch in &self.branches {
            let pod_directory = branch.directory.join(pod);
            fs::create_dir_all(&pod_directory).context(&operation)?;
            if self.version == Version::V2 {
                enable(&pod_directory, &wanted).context(&operation)?;
            }
            let directory = pod_directory.join(container);
            fs::create_dir_all(&directory).context(&operation)?;
            branches.push(CgroupDir { directory, controllers: branch.controllers.clone() });
        }
        Ok(Cgroup::new(self.version, branches))
    }

    /// Removes the cgroups of a pod and its containers. Waits a limited time for killed processes.
    pub fn remove_pod(&self, pod: &str) -> Result<()> {
        self.branches.iter().try_for_each(|branch| remove_soon(&branch.directory.join(pod)))
    }
}

/// Removes a lab's cgroup with all descendants, and the common directory if this was the last lab. Waits for
/// killed processes. Returns true if it existed.
pub fn remove_lab(directory: &Path) -> Result<bool> {
    let was_there = directory.exists();
    remove_soon(directory)?;
    if was_there && let Some(all_labs) = directory.parent() {
        // Fails as long as another lab has its cgroup there.
        let _ = fs::remove_dir(all_labs);
    }
    Ok(was_there)
}

fn remove_soon(directory: &Path) -> Result<()> {
    let operation = || format!("remove the cgroup {}", directory.display());
    wait_for(&format!("no process is left in the cgroup {}", directory.display()), REMOVE_TIMEOUT, || {
        match remove(directory) {
            Ok(()) => Ok(Some(())),
            Err(error) if error.kind() == ErrorKind::ResourceBusy => Ok(None),
            Err(error) => Err(EnvironmentError::new(operation(), error)),
        }
    })
}

/// Removes a cgroup and all its descendants, if it exists. The kernel's own files are removed with their
/// directory.
fn remove(directory: &Path) -> io::Result<()> {
    let remove_all = || {
        for entry in fs::read_dir(directory)?.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove(&entry.path())?;
            }
        }
        fs::remove_dir(directory)
    };
    match remove_all() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_without_controllers_is_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("cgroup.controllers"), "cpuset io pids\n").expect("it is writable");
        let candidate = folder.path().join(ALL_LABS).join("x");
        let reason = establish_v2(&[candidate], &V2_CONTROLLERS).expect_err("there is no cpu controller");
        assert!(reason.ends_with("the cpu controller is not available here"), "{reason}");
    }
}
