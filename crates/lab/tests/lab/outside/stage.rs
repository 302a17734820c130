//! A registry of a test's own, the user that runs it, and the state of the machine before.

use crate::roles::{TEST_TIMEOUT, send};
use crate::{ensure, explain};
use lab::process_table::{ProcessIdentity, is_dead, pids, stat};
use rustix::process::Signal;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// `nobody`: a user without a home, a session or privileges.
const NOBODY: (u32, u32) = (65534, 65534);

/// The user who creates the labs of a test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum User {
    Root,
    Ordinary,
    /// A user with subordinate IDs (`/etc/subuid`): user and group.
    Subordinates(u32, u32),
}

impl User {
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "as_root",
            Self::Ordinary => "as_an_ordinary_user",
            Self::Subordinates(..) => "as_a_user_with_subordinates",
        }
    }

    /// The first user of this machine who has subordinate users and groups and could use them; `None` if
    /// there is none.
    pub fn with_subordinates() -> Option<Self> {
        ["newuidmap", "newgidmap"]
            .iter()
            .all(|name| Path::new("/usr/bin").join(name).is_file())
            .then_some(())?;
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let (users, groups) = (read("/etc/subuid"), read("/etc/subgid"));
        read("/etc/passwd").lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let &[name, _, user, group, ..] = fields.as_slice() else { return None };
            let (user, group): (u32, u32) = (user.parse().ok()?, group.parse().ok()?);
            let owns = |ranges: &str| ranges.lines().any(|range| range.split(':').next() == Some(name));
            (user != 0 && owns(&users) && owns(&groups)).then_some(Self::Subordinates(user, group))
        })
    }

    /// User and group to become if we are root.
    fn identity(self) -> Option<(u32, u32)> {
        match self {
            Self::Root => None,
            Self::Ordinary => Some(NOBODY),
            Self::Subordinates(user, group) => Some((user, group)),
        }
        .filter(|_| rustix::process::geteuid().is_root())
    }
}

/// The environment of a test.
#[derive(Debug)]
pub struct Stage {
    user: User,
    folder: TempDir,
    binary: PathBuf,
    interfaces: BTreeSet<String>,
    mounts: String,
}

/// The part of `lab::registry::LabStatus` that the test reads.
#[derive(Debug, Deserialize)]
pub struct ListedLab {
    pub id: String,
    pub running: bool,
    pub processes: usize,
    pub pods: Vec<ListedPod>,
}

#[derive(Debug, Deserialize)]
pub struct ListedPod {
    pub name: String,
    pub address: String,
    pub enter: Vec<String>,
    pub containers: Vec<ListedContainer>,
}

#[derive(Debug, Deserialize)]
pub struct ListedContainer {
    pub pid: Option<i32>,
}

impl Stage {
    /// A directory that the user can reach, with a copy of this binary and a registry of its own.
    pub fn set(user: User) -> Result<Self, String> {
        let set = || {
            let folder = tempfile::Builder::new().prefix("mm-").tempdir()?;
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
            let binary = folder.path().join("lab-test");
            let own = std::env::current_exe()?;
            // A link costs nothing, but the binary's own directory may be closed to the user or on another
            // file system.
            fs::hard_link(&own, &binary).or_else(|_| fs::copy(&own, &binary).map(drop))?;
            let stage = Self { user, folder, binary, interfaces: interfaces()?, mounts: mounts()? };
            fs::create_dir(stage.registry())?;
            if let Some((user, group)) = user.identity() {
                chown(stage.registry(), Some(user), Some(group))?;
            }
            Ok(stage)
        };
        set().map_err(|error: std::io::Error| format!("set the stage: {error}"))
    }

    fn registry(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).env("MESHMETER_RUNTIME_DIR", self.registry().join("mm")).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some((user, group)) = self.user.identity() {
            command.uid(user).gid(group);
        }
        command
    }

    /// Runs a role to its end. Returns its status and all its output.
    pub fn run(&self, arguments: &[&str], within: Duration) -> Result<(ExitStatus, String), String> {
        let mut child = self.command(arguments).spawn().map_err(|error| error.to_string())?;
        let readers: Vec<_> = [
            child.stdout.take().map(|output| Box::new(output) as Box<dyn std::io::Read + Send>),
            child.stderr.take().map(|output| Box::new(output) as Box<dyn std::io::Read + Send>),
        ]
        .into_iter()
        .flatten()
        .map(|mut output| {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = output.read_to_string(&mut text);
                text
            })
        })
        .collect();
        let status = wait(&mut child, within)?;
        let output =
            readers.into_iter().filter_map(|reader| reader.join().ok()).collect::<Vec<_>>().join("\n");
        Ok((status, output))
    }

    /// Runs a command of the machine as the stage's user, prefixed with `before`. Returns its output.
    pub fn run_command(&self, before: &[String], command: &[&str]) -> Result<String, String> {
        let (program, arguments) = before.split_first().ok_or("there is no command")?;
        let mut command_line = Command::new(program);
        command_line.args(arguments).args(command);
        if let Some((user, group)) = self.user.identity() {
            command_line.uid(user).gid(group);
        }
        let output = command_line.output().map_err(|error| format!("{program}: {error}"))?;
        ensure(output.status.success(), format!("{program}: {}", String::from_utf8_lossy(&output.stderr)))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts a lab that waits to be ended, without waiting until it is up.
    pub fn start_holding(&self) -> Result<Held, String> {
        let mut command = self.command(&["role:hold"]);
        command.stderr(Stdio::inherit());
        let child = command.spawn().map_err(|error| error.to_string())?;
        Ok(Held { child: Some(child), id: String::new(), inner: None })
    }

    /// Starts a lab that waits to be ended, and waits until it is up.
    pub fn hold(&self) -> Result<Held, String> {
        let mut held = self.start_holding()?;
        let child = held.child.as_mut().ok_or("it was just started")?;
        let output = child.stdout.take().ok_or("its output is a pipe")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        let id = line.trim().strip_prefix("ready ").ok_or(format!("the lab did not come up: {line:?}"))?;
        held.id = id.to_owned();
        let record =
            fs::read_to_string(self.directory(id).join("lab.json")).map_err(|error| error.to_string())?;
        let record: HeldRecord = serde_json::from_str(&record).map_err(|error| error.to_string())?;
        held.inner = Some(Inner::for_process(record.inner)?);
        Ok(held)
    }

    fn directory(&self, id: &str) -> PathBuf {
        self.registry().join("mm/labs").join(id)
    }

    /// Removes a lab's entry from the registry, and nothing else.
    pub fn forget(&self, id: &str) -> Result<(), String> {
        fs::remove_dir_all(self.directory(id)).map_err(|error| error.to_string())
    }

    pub fn down(&self, id: &str) -> Result<(), String> {
        let (status, output) = self.run(&["role:down", id], TEST_TIMEOUT)?;
        ensure(status.success() && output.contains(id), format!("lab down: {status}: {output}"))
    }

    /// What `meshmeter lab down` does without a name.
    pub fn clear(&self) -> Result<(), String> {
        let (status, output) = self.run(&["role:clear"], TEST_TIMEOUT)?;
        ensure(status.success(), format!("lab down: {status}: {output}"))
    }

    pub fn labs(&self) -> Result<Vec<ListedLab>, String> {
        let (status, output) = self.run(&["role:list"], TEST_TIMEOUT)?;
        ensure(status.success(), format!("lab status: {status}: {output}"))?;
        serde_json::from_str(&output).map_err(|error| format!("{error}: {output}"))
    }

    pub fn wait_until(&self, what: &str, check: impl Fn() -> Result<bool, String>) -> Result<(), String> {
        lab::wait_for(what, TEST_TIMEOUT, || {
            let there =
                check().map_err(|reason| experiment::environment::EnvironmentError::new("look", reason))?;
            Ok(there.then_some(()))
        })
        .map_err(|error| explain(&error))
    }

    pub fn open_registry_to_others(&self) -> Result<(), String> {
        let open = || {
            let folder = self.registry().join("mm");
            fs::create_dir(&folder)?;
            if let Some((user, group)) = self.user.identity() {
                chown(&folder, Some(user), Some(group))?;
            }
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))
        };
        open().map_err(|error| error.to_string())
    }

    pub fn remove_registry(&self) -> Result<(), String> {
        fs::remove_dir(self.registry().join("mm")).map_err(|error| error.to_string())
    }

    /// Checks that everything is as before once no lab of the stage is left.
    pub fn nothing_is_left(&self) -> Result<(), String> {
        let left: Vec<_> =
            fs::read_dir(self.registry()).map_err(|error| error.to_string())?.flatten().collect();
        ensure(left.is_empty(), format!("the registry holds {left:?}"))?;
        let interfaces = interfaces().map_err(|error| error.to_string())?;
        ensure(interfaces == self.interfaces, format!("interfaces are now {interfaces:?}"))?;
        ensure(mounts().map_err(|error| error.to_string())? == self.mounts, "there are other mounts now")
    }
}

#[derive(Deserialize)]
struct HeldRecord {
    inner: ProcessIdentity,
}

/// A lab that waits to be ended. Dropping it ends it.
#[derive(Debug)]
pub struct Held {
    child: Option<Child>,
    pub id: String,
    inner: Option<Inner>,
}

/// The lab's first process and its PID namespace.
#[derive(Debug)]
struct Inner {
    process: ProcessIdentity,
    namespace: PathBuf,
    /// Kept open: the kernel reuses the number of a namespace that is gone, perhaps for another test's.
    _held: fs::File,
}

impl Inner {
    fn for_process(process: ProcessIdentity) -> Result<Self, String> {
        let link = format!("/proc/{}/ns/pid", process.pid);
        let namespace = fs::read_link(&link).map_err(|error| error.to_string())?;
        let held = fs::File::open(&link).map_err(|error| error.to_string())?;
        Ok(Self { process, namespace, _held: held })
    }

    /// PIDs of its processes on the machine, without dead ones that the machine's first process has yet to
    /// reap.
    fn processes(&self) -> Vec<i32> {
        let pids = pids(Path::new("/proc")).unwrap_or_default();
        let in_namespace =
            |pid: &i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok().as_ref() == Some(&self.namespace);
        let lives = |pid: &i32| stat(Path::new("/proc"), *pid).is_ok_and(|stat| !is_dead(&stat));
        pids.into_iter().filter(in_namespace).filter(lives).collect()
    }
}

impl Held {
    pub fn signal_outer(&self, signal: Signal) {
        // A child of ours, which is not waited for before `ended`.
        if let Some(child) = &self.child {
            send(i32::try_from(child.id()).unwrap_or(0), signal);
        }
    }

    pub fn signal_inner(&self, signal: Signal) {
        if let Some(inner) = &self.inner
            && inner.process.is_alive(Path::new("/proc"))
        {
            send(inner.process.pid, signal);
        }
    }

    /// The lab's network namespace.
    pub fn network(&self) -> Result<PathBuf, String> {
        let inner = self.inner.as_ref().ok_or("it did not come up")?;
        fs::read_link(format!("/proc/{}/ns/net", inner.process.pid)).map_err(|error| error.to_string())
    }

    /// Waits for the outer process.
    pub fn ended(&mut self) -> Result<ExitStatus, String> {
        let mut child = self.child.take().ok_or("it was waited for before")?;
        wait(&mut child, TEST_TIMEOUT)
    }

    pub fn wait_until_no_process_is_left(&self, stage: &Stage) -> Result<(), String> {
        let inner = self.inner.as_ref().ok_or("it did not come up")?;
        stage.wait_until("no process of the lab is left", || {
            Ok(inner.processes().is_empty() && !inner.process.is_alive(Path::new("/proc")))
        })
    }

    /// Checks that no process, directory or cgroup of this lab is left.
    pub fn nothing_is_left(&self, stage: &Stage) -> Result<(), String> {
        let inner = self.inner.as_ref().ok_or("it did not come up")?;
        let processes = inner.processes();
        ensure(processes.is_empty(), format!("processes are left: {processes:?}"))?;
        ensure(!stage.directory(&self.id).exists(), "its folder is left")?;
        let mut groups = Vec::new();
        find_named(Path::new("/sys/fs/cgroup"), &self.id, 0, &mut groups);
        ensure(groups.is_empty(), format!("control groups are left: {groups:?}"))
    }

    /// For a test that failed half-way: the kernel ends the lab with its outer process.
    pub fn end_at_once(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait(child: &mut Child, within: Duration) -> Result<ExitStatus, String> {
    let waited = lab::wait_for("the process ends", within, || {
        child.try_wait().map_err(|error| experiment::environment::EnvironmentError::new("wait", error))
    });
    waited.map_err(|error| {
        let _ = child.kill();
        let _ = child.wait();
        explain(&error)
    })
}

/// Finds directories of this name in `folder` and below.
fn find_named(folder: &Path, name: &str, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name() == name {
            found.push(entry.path());
        } else if depth < 12 {
            find_named(&entry.path(), name, depth + 1, found);
        }
    }
}

fn interfaces() -> std::io::Result<BTreeSet<String>> {
    fs::read_dir("/sys/class/net")?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn mounts() -> std::io::Result<String> {
    fs::read_to_string("/proc/self/mountinfo")
}

/// Mount point of version 2.
pub fn v2_mount() -> Option<PathBuf> {
    let mounts = lab::cgroup::hierarchy::parse_mounts(&mounts().ok()?);
    mounts.into_iter().find(lab::cgroup::hierarchy::is_v2).map(|mount| mount.mount_point)
}
