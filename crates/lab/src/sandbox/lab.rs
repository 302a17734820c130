//! A lab as seen from inside, created by [`crate::enter()`]. Clones share it.

use crate::Result;
use crate::sandbox::cgroup::{Cgroup, Version};
use crate::sandbox::container::{ContainerUser, LogLimiter};
use crate::sandbox::name::check_name;
use crate::sandbox::namespace::{Namespace, Origin};
use crate::sandbox::network;
use crate::sandbox::privileges::Privileges;
use crate::sandbox::process_table::ProcessIdentity;
use crate::sandbox::proxy_user;
use crate::sandbox::redirect::{PROXY_USER, ProxyIdentity};
use crate::sandbox::registry::access::Access;
use crate::sandbox::registry::record::{PodNote, Record, save_access, save_pod};
use crate::sandbox::registry::status::{LabStatus, status};
use crate::sandbox::subordinate::NoProxyUser;
use confinement::user_exists;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use rustix::fs::{Gid, Uid};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The user of servers in labs of root: `nonroot` in distroless images.
const SERVER_USER: u32 = 65532;

/// Mode bits that let other users read and run a file.
const READ_AND_RUN: u32 = 0o005;

/// Name of the directory of copied files.
const EXPOSED_FILES: &str = "files";

#[derive(Clone, Debug)]
pub struct Lab(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    record: Record,
    private_dir: PathBuf,
    stop_requested: Arc<AtomicBool>,
    switch: Namespace,
    /// Why proxies cannot have a user of their own, if they cannot.
    no_proxy_user: Option<NoProxyUser>,
    has_server_user: bool,
    proxies_dir: PathBuf,
    /// The machine's own proc, opened before the lab's was mounted over it.
    host_proc_path: PathBuf,
    _outer_proc_file: OwnedFd,
    log_limiter: LogLimiter,
    state: Mutex<Changing>,
}

/// Numbers of pods, which their addresses follow from. A number that was given back is taken again only when
/// there is no other, the longest unused one first: other pods may still remember its address.
#[derive(Debug, Default)]
struct PodNumbers {
    next: u16,
    unused: VecDeque<u16>,
}

impl PodNumbers {
    fn take(&mut self) -> Result<u16, &'static str> {
        if self.next < network::MAX_PODS {
            self.next += 1;
            return Ok(self.next - 1);
        }
        self.unused.pop_front().ok_or("all addresses of the lab are in use")
    }
}

#[derive(Debug, Default)]
struct Changing {
    numbers: PodNumbers,
    /// Names by number.
    pods: BTreeMap<u16, String>,
    /// Files and programs, with their copies or mounts for the proxies' user.
    exposed: BTreeMap<PathBuf, PathBuf>,
}

impl Lab {
    pub(crate) fn open(
        record: Record,
        private_dir: PathBuf,
        host_proc_file: OwnedFd,
        stop_requested: Arc<AtomicBool>,
    ) -> Result<Self> {
        let switch = Namespace::open("switch", Origin::Process)?;
        network::set_up_switch(&switch)?;
        let host_proc_path = PathBuf::from(format!("/proc/self/fd/{}", host_proc_file.as_raw_fd()));
        let no_proxy_user = proxy_user::check(&record, &private_dir).err();
        let proxies_dir = match (record.privileges, &no_proxy_user) {
            (Privileges::UserNamespace, None) => proxy_user::mount_folder(&private_dir)?,
            _ => private_dir.clone(),
        };
        let can_change_user = record.privileges == Privileges::Root && no_proxy_user.is_none();
        Ok(Self(Arc::new(Inside {
            has_server_user: can_change_user && user_exists(SERVER_USER),
            record,
            private_dir,
            host_proc_path,
            _outer_proc_file: host_proc_file,
            log_limiter: LogLimiter::start().context("watch the logs of containers")?,
            stop_requested,
            switch,
            no_proxy_user,
            proxies_dir,
            state: Mutex::default(),
        })))
    }

    pub fn id(&self) -> &str {
        &self.0.record.id
    }

    /// A directory of the lab for keys and sockets, removed with the lab. Its path is short enough for
    /// sockets (sun_path, 108 bytes, leaves 40 for a name). Other users may pass through it if proxies have
    /// their own user, so secrets belong in [`Self::create_private_dir`].
    pub fn private_dir(&self) -> &Path {
        &self.0.private_dir
    }

    /// User and group that a container of this kind switches to; absent if it runs as the lab's.
    pub fn user_of(&self, user: ContainerUser) -> Option<u32> {
        match user {
            ContainerUser::Proxy => (self.proxy_identity() == ProxyIdentity::Uid).then_some(PROXY_USER),
            ContainerUser::Server => self.0.has_server_user.then_some(SERVER_USER),
            ContainerUser::Lab | ContainerUser::NetworkSetup | ContainerUser::NodeProxy => None,
        }
    }

    /// Creates a directory that only `user` can enter (mode 0700).
    pub fn create_private_dir(&self, name: &str, user: ContainerUser) -> Result<PathBuf> {
        let operation = format!("make the lab's folder {name}");
        check_name(name).context(operation.clone())?;
        let parent = match user {
            ContainerUser::Proxy => &self.0.proxies_dir,
            _ => &self.0.private_dir,
        };
        let path = parent.join(name);
        fs::DirBuilder::new().mode(0o700).create(&path).context(operation)?;
        self.give_to(&path, user)?;
        Ok(path)
    }

    /// Changes the owner of a file to the user of this kind of container; its mode stays.
    pub fn give_to(&self, path: &Path, user: ContainerUser) -> Result<()> {
        if let Some(user) = self.user_of(user) {
            rustix::fs::chown(path, Some(Uid::from_raw(user)), Some(Gid::from_raw(user)))
                .context(format!("give {} to user {user}", path.display()))?;
        }
        Ok(())
    }

    /// The machine's own `/proc`, which shows all its processes, not only the lab's.
    pub fn host_proc_path(&self) -> &Path {
        &self.0.host_proc_path
    }

    pub fn proxy_identity(&self) -> ProxyIdentity {
        if self.0.no_proxy_user.is_none() { ProxyIdentity::Uid } else { ProxyIdentity::Mark }
    }

    pub fn no_proxy_user(&self) -> Option<&NoProxyUser> {
        self.0.no_proxy_user.as_ref()
    }

    pub fn privileges(&self) -> Privileges {
        self.0.record.privileges
    }

    pub fn cgroup_version(&self) -> Option<Version> {
        self.cgroup().map(|cgroup| cgroup.version)
    }

    pub fn no_cgroup_because(&self) -> Option<&str> {
        self.0.record.no_cgroup_because.as_deref()
    }

    /// True if SIGINT, SIGTERM or SIGHUP was received. A second signal ends Meshmeter at once.
    pub fn stop_requested(&self) -> bool {
        self.0.stop_requested.load(Ordering::Relaxed)
    }

    pub fn check_not_stopped(&self) -> Result<()> {
        if self.stop_requested() {
            return Err(EnvironmentError::new("go on", "Meshmeter was stopped"));
        }
        Ok(())
    }

    pub fn status(&self) -> Result<LabStatus> {
        let mut record = self.0.record.clone();
        // The outer process records our PID only after starting us. The machine's proc has it too.
        let number = fs::read_link(self.host_proc_path().join("self"));
        let pid = number.ok().and_then(|number| number.to_str()?.parse().ok());
        let identity = pid.map(|pid| ProcessIdentity::read(self.host_proc_path(), pid)).transpose();
        record.inner = identity.context("read the machine's /proc")?;
        Ok(status(record, self.0.private_dir.clone(), self.host_proc_path()))
    }

    pub fn note_access(&self, access: &Access) -> Result<()> {
        save_access(&self.0.private_dir, access)
    }

    pub(crate) fn reserve_pod_number(&self, name: &str) -> Result<u16, &'static str> {
        let mut state = self.state();
        if state.pods.values().any(|taken| taken == name) {
            return Err("the lab has a pod of that name already: a workload needs another name");
        }
        if state.pods.len() == network::MAX_PORTS {
            return Err("a bridge of Linux has 1023 ports, and each is taken by a pod");
        }
        state.numbers.take()
    }

    /// Reserves the address of a pod that is never created.
    pub(crate) fn reserve_address(&self) -> Result<u16, &'static str> {
        self.state().numbers.take()
    }

    /// Gives numbers back whose addresses no pod has any more.
    pub(crate) fn release_numbers(&self, numbers: impl IntoIterator<Item = u16>) {
        self.state().numbers.unused.extend(numbers);
    }

    pub(crate) fn switch(&self) -> &Namespace {
        &self.0.switch
    }

    pub(crate) fn log_limiter(&self) -> &LogLimiter {
        &self.0.log_limiter
    }

    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.0.record.cgroup.as_ref()
    }

    pub(crate) fn no_cgroup_for(&self, operation: &str) -> EnvironmentError {
        let reason = self.no_cgroup_because().unwrap_or("none can be made");
        EnvironmentError::new(
            operation,
            format!("a limit needs control groups, and there are none here: {reason}"),
        )
        .with_hint(
            "run as root, or under `systemd-run --user --scope -p Delegate=yes`, or leave the limits out",
        )
    }

    /// Bind-mounts a program below the lab's directory, in the lab's own mount namespace, for the proxies'
    /// user, who may not be able to pass through our home directory. It keeps its name, which process lists
    /// show.
    pub(crate) fn expose_program(&self, program: &Path) -> Result<PathBuf> {
        let operation = format!("make {} reachable for the proxy's user", program.display());
        if !program.is_absolute() {
            // A bare name is looked up in PATH, whose directories anyone can enter.
            return Ok(program.to_owned());
        }
        let mode = fs::metadata(program).context(&operation)?.mode();
        if mode & READ_AND_RUN != READ_AND_RUN {
            return Err(EnvironmentError::new(operation, "its file is closed to other users")
                .with_hint(format!("chmod a+rx {}", program.display())));
        }
        let mount = |exposed: &Path| {
            fs::write(exposed, [])?;
            Ok(rustix::mount::mount_bind(program, exposed)?)
        };
        self.expose(program, "programs", mount).context(operation)
    }

    /// Copies a file for the proxies' user, who may not be able to enter its directory. Later changes are not
    /// copied.
    pub(crate) fn expose_file(&self, file: &Path) -> Result<PathBuf> {
        let copy = |exposed: &Path| {
            fs::copy(file, exposed)?;
            fs::set_permissions(exposed, Permissions::from_mode(0o644))
        };
        self.expose(file, EXPOSED_FILES, copy).context(format!("copy {} for the proxies", file.display()))
    }

    /// Directory of the files that [`Self::expose_file`] copies.
    pub(crate) fn exposed_files_dir(&self) -> Result<PathBuf> {
        let directory = self.0.private_dir.join(EXPOSED_FILES);
        fs::create_dir_all(&directory).context(format!("make {}", directory.display()))?;
        Ok(directory)
    }

    /// Exposes a file once, in a directory of its own below `folder`, where `put` creates it.
    fn expose(
        &self,
        file: &Path,
        folder: &str,
        put: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        let mut state = self.state();
        if let Some(exposed) = state.exposed.get(file) {
            return Ok(exposed.clone());
        }
        let folder = folder_for_all(&self.0.private_dir.join(folder), state.exposed.len())?;
        let exposed = folder.join(file.file_name().unwrap_or(file.as_os_str()));
        put(&exposed)?;
        state.exposed.insert(file.to_owned(), exposed.clone());
        Ok(exposed)
    }

    /// Writes down what a pod has, for commands outside the lab.
    pub(crate) fn note_pod(&self, number: u16, note: &PodNote) -> Result<()> {
        self.state().pods.insert(number, note.name.clone());
        save_pod(&self.0.private_dir, number, Some(note))
    }

    pub(crate) fn forget_pod(&self, number: u16) {
        self.state().pods.remove(&number);
        // On failure, `lab status` shows a pod that no longer exists.
        let _ = save_pod(&self.0.private_dir, number, None);
    }

    fn state(&self) -> MutexGuard<'_, Changing> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates directory `number` in `parent`, both open to all users regardless of the umask.
fn folder_for_all(parent: &Path, number: usize) -> io::Result<PathBuf> {
    let folder = parent.join(number.to_string());
    fs::create_dir_all(&folder)?;
    for folder in [parent, &folder] {
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_again_once_all_were_used_longest_unused_first() {
        let mut numbers = PodNumbers::default();
        assert_eq!((numbers.take(), numbers.take()), (Ok(0), Ok(1)));
        numbers.unused.extend([1, 0]);
        let rest: Vec<u16> = (2..network::MAX_PODS).map(|_| numbers.take().unwrap()).collect();
        assert_eq!((rest[0], rest[rest.len() - 1]), (2, network::MAX_PODS - 1));
        assert_eq!((numbers.take(), numbers.take()), (Ok(1), Ok(0)));
        assert!(numbers.take().unwrap_err().contains("in use"));
    }
}
