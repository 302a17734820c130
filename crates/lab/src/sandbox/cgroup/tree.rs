//! Creates and removes a lab's cgroups: `…/meshmeter/<lab>/<pod>/<container>`.

use super::group::{Cgroup, CgroupDir};
use super::{Version, hierarchy};
use crate::Result;
use crate::sandbox::registry::runtime_dir::retry_if_removed;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use mesh::wait::wait_for;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ALL_LABS: &str = "meshmeter";

/// A cgroup stays busy until the kernel has reaped its last killed process.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(5);
const V2_CONTROLLERS: [&str; 2] = ["cpu", "memory"];

/// Possible cgroups of a lab, best first: in version 1 if the controllers are mounted there, else in version 2.
/// They are recorded before the first one is created.
pub fn candidates(lab_id: &str) -> io::Result<Vec<Cgroup>> {
    let mounts = hierarchy::parse_mounts(&fs::read_to_string("/proc/self/mountinfo")?);
    let memberships = match fs::read_to_string("/proc/self/cgroup") {
        Ok(text) => hierarchy::parse_memberships(&text),
        // The kernel has no cgroup support.
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let of_lab = |home: &Path| home.join(ALL_LABS).join(lab_id);
    if let Some(homes) = hierarchy::v1_homes(&mounts, &memberships) {
        let of_lab = |home: CgroupDir| CgroupDir { directory: of_lab(&home.directory), ..home };
        return Ok(vec![Cgroup { version: Version::V1, branches: homes.into_iter().map(of_lab).collect() }]);
    }
    let homes = hierarchy::v2_candidates(&mounts, &memberships);
    Ok(homes.iter().map(|home| v2(of_lab(home), &V2_CONTROLLERS)).collect())
}

/// A lab's cgroup in version 2, with these controllers.
pub fn v2(directory: PathBuf, controllers: &[&str]) -> Cgroup {
    let controllers = controllers.iter().map(|&name| name.to_owned()).collect();
    Cgroup { version: Version::V2, branches: vec![CgroupDir { directory, controllers }] }
}

/// Creates the first of these cgroups that can be created. The kernel releases the locks when their process
/// ends: cgroups without a lock are left over.
pub fn establish(candidates: &[Cgroup]) -> io::Result<(Cgroup, Vec<File>)> {
    let mut refused = io::Error::other("no control groups are mounted");
    for candidate in candidates {
        // Another lab that is starting may remove it as left over before it is locked.
        match retry_if_removed(|| candidate.make().and_then(|()| candidate.lock())) {
            Ok(locks) => return Ok((candidate.clone(), locks)),
            Err(error) => {
                for directory in candidate.directories() {
                    // Created a moment ago and empty; `meshmeter lab down` would find the rest.
                    let _ = remove(directory);
                }
                refused = error;
            }
        }
    }
    Err(refused)
}

/// Removes cgroups of killed labs. These may be without a registry entry: from a test, or from a container
/// that is gone.
pub fn remove_remains(candidates: &[Cgroup]) {
    for all_labs in candidates.iter().flat_map(Cgroup::directories).filter_map(Path::parent) {
        for lab in fs::read_dir(all_labs).into_iter().flatten().flatten() {
            let Ok(file) = File::open(lab.path()) else { continue };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                // Fails while a process is left; the next start tries again.
                let _ = remove(&lab.path());
            }
        }
    }
}

fn enable(group: &Path, wanted: &[String]) -> io::Result<()> {
    let listed = |list: &str, controller: &str| list.split_ascii_whitespace().any(|name| name == controller);
    let there = fs::read_to_string(group.join("cgroup.controllers"))?;
    if let Some(missing) = wanted.iter().find(|wanted| !listed(&there, wanted)) {
        return Err(io::Error::other(format!("the {missing} controller is not available here")));
    }
    let control = group.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&control)?;
    let mut missing = wanted.iter().filter(|wanted| !listed(&enabled, wanted));
    missing.try_for_each(|controller| fs::write(&control, format!("+{controller}")))
}

impl CgroupDir {
    fn make(&self, version: Version) -> io::Result<()> {
        if version == Version::V2 {
            let all_labs = self.directory.parent().unwrap_or(&self.directory);
            enable(all_labs.parent().unwrap_or(all_labs), &self.controllers)?;
            fs::create_dir_all(all_labs)?;
            enable(all_labs, &self.controllers)?;
        }
        fs::create_dir_all(&self.directory)?;
        if version == Version::V2 { enable(&self.directory, &self.controllers) } else { Ok(()) }
    }
}

/// The cgroup of a lab.
impl Cgroup {
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.branches.iter().map(|branch| branch.directory.as_path())
    }

    fn make(&self) -> io::Result<()> {
        self.branches.iter().try_for_each(|branch| {
            branch.make(self.version).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", branch.directory.display()))
            })
        })
    }

    fn lock(&self) -> io::Result<Vec<File>> {
        let lock = |directory: &Path| {
            let file = File::open(directory)?;
            flock(&file, FlockOperation::LockShared)?;
            fs::metadata(directory).map(|_| file)
        };
        let locked = self.directories().map(lock).collect::<io::Result<_>>();
        locked.map_err(|error| io::Error::new(error.kind(), format!("lock the lab's cgroups: {error}")))
    }

    /// Creates the cgroup of a container.
    pub fn create(&self, pod: &str, container: &str) -> Result<Self> {
        let operation = format!("make the cgroup of {pod}/{container}");
        let mut branches = Vec::new();
        for CgroupDir { directory, controllers } in &self.branches {
            let pod_directory = directory.join(pod);
            fs::create_dir_all(&pod_directory).context(&operation)?;
            if self.version == Version::V2 {
                enable(&pod_directory, controllers).context(&operation)?;
            }
            let directory = pod_directory.join(container);
            fs::create_dir_all(&directory).context(&operation)?;
            branches.push(CgroupDir { directory, controllers: controllers.clone() });
        }
        Ok(Self { version: self.version, branches })
    }

    /// Removes the cgroups of a pod and its containers. Waits a limited time for killed processes.
    pub fn remove_pod(&self, pod: &str) -> Result<()> {
        self.directories().try_for_each(|directory| remove_soon(&directory.join(pod)))
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
        let reason = establish(&[v2(candidate, &V2_CONTROLLERS)]).expect_err("there is no cpu controller");
        assert!(reason.to_string().ends_with("the cpu controller is not available here"), "{reason}");
    }
}
