//! A pod: a network namespace with an address on the lab's bridge, and the processes in it.
//!
//! Dropping a pod ends its processes and removes its interface, rules, namespace and cgroups.

use crate::Result;
use crate::sandbox::container::{self, Container, ContainerSpec, ContainerUser, ENDED_TIMEOUT, Launch};
use crate::sandbox::lab::Lab;
use crate::sandbox::name::check_name;
use crate::sandbox::namespace::{Namespace, Origin};
use crate::sandbox::redirect::{self, PROXY_USER, Redirect};
use crate::sandbox::registry::record::{ContainerNote, PodNote};
use crate::sandbox::registry::runtime_dir::RUNTIME_VARIABLE;
use crate::sandbox::{network, process_table};
use experiment::environment::{EnvironmentError, ErrorContext as _, error_chain};
use experiment::topology::Resources;
use mesh::concurrent::try_side_by_side;
use mesh::wait::wait_for;
use procfs_core::net::{TcpNetEntries, TcpNetEntry, TcpState};
use procfs_core::{ExplicitSystemInfo, FromReadSI as _};
use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::BTreeSet;
use std::error::Error as _;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd as _;
use std::os::linux::fs::MetadataExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PodSpec {
    /// Lower-case letters, digits and dashes.
    pub name: String,
    /// Absent: the pod sees the machine's files.
    pub names: Option<NameFiles>,
}

const NAME_PLACES: [&str; 2] = ["/etc/hosts", "/etc/resolv.conf"];

/// Checks that the machine has the files that pods' own name files are mounted on; istiod reads them too.
pub(crate) fn check_name_places() -> Result<()> {
    NAME_PLACES.into_iter().try_for_each(check_name_place)
}

fn check_name_place(place: &str) -> Result<()> {
    std::fs::metadata(place).map(drop).map_err(|error| {
        EnvironmentError::new(
            format!("look at {place}, which pods see a file of their own in place of"),
            error,
        )
        .with_hint(format!("an empty file will do: `touch {place}`"))
    })
}

/// Name resolution in a pod: files mounted over the machine's own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NameFiles {
    pub hosts: PathBuf,
    pub resolver: PathBuf,
}

impl PodSpec {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), names: None }
    }

    pub fn with_names(self, names: NameFiles) -> Self {
        Self { names: Some(names), ..self }
    }
}

#[derive(Debug)]
pub struct Pod {
    lab: Lab,
    number: u16,
    note: PodNote,
    namespace: Arc<Namespace>,
    containers: Vec<Container>,
    /// Numbers of further addresses.
    further_numbers: Mutex<Vec<u16>>,
    open: bool,
}

impl Lab {
    /// May be called from several threads. On an error nothing of the pod remains.
    pub fn create_pod(&self, spec: &PodSpec) -> Result<Pod> {
        Pod::create(self, spec, self.pod_number(spec)?)
    }

    /// Creates pods in parallel. Their addresses are in the order of `specs`.
    pub fn create_pods(&self, specs: &[PodSpec]) -> Result<Vec<Pod>> {
        let numbered =
            specs.iter().map(|spec| Ok((spec, self.pod_number(spec)?))).collect::<Result<Vec<_>>>()?;
        try_side_by_side(numbered, |(spec, number)| Pod::create(self, spec, number))
    }

    fn pod_number(&self, spec: &PodSpec) -> Result<u16> {
        let operation = format!("make pod {}", spec.name);
        check_name(&spec.name).context(&operation)?;
        self.reserve_pod_number(&spec.name).context(operation)
    }
}

impl Pod {
    fn create(lab: &Lab, spec: &PodSpec, number: u16) -> Result<Self> {
        let origin = if spec.names.is_some() { Origin::NewWithMounts } else { Origin::New };
        let namespace = Arc::new(Namespace::open(&spec.name, origin)?);
        let note = PodNote {
            name: spec.name.clone(),
            address: network::pod_address(number),
            namespace_file: namespace.file().as_raw_fd(),
            mounts_file: namespace.mounts_file().map(|file| file.as_raw_fd()),
            containers: Vec::new(),
        };
        // From here on, dropping the pod takes down what was set up.
        let pod = Self {
            lab: lab.clone(),
            number,
            note,
            namespace,
            containers: Vec::new(),
            further_numbers: Mutex::default(),
            open: true,
        };
        if let Some(names) = &spec.names {
            pod.mount_names(names.clone())?;
        }
        network::connect_pod(lab.switch(), &pod.namespace, number)?;
        lab.note_pod(number, &pod.note)?;
        Ok(pod)
    }

    fn mount_names(&self, names: NameFiles) -> Result<()> {
        let mounted: io::Result<()> = self.run(move || {
            for (file, place) in [names.hosts, names.resolver].iter().zip(NAME_PLACES) {
                rustix::mount::mount_bind(file, place).map_err(|error| {
                    let error = io::Error::from(error);
                    io::Error::new(error.kind(), format!("mount {} on {place}: {error}", file.display()))
                })?;
            }
            Ok(())
        })?;
        mounted.context(format!("give pod {} its own names", self.name()))
    }

    pub(crate) fn lab(&self) -> &Lab {
        &self.lab
    }

    pub(crate) fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    pub fn name(&self) -> &str {
        &self.note.name
    }

    pub fn address(&self) -> Ipv4Addr {
        self.note.address
    }

    /// Adds one more address, for connections from a source address other than the pod's own.
    pub(crate) fn add_address(&self) -> Result<Ipv4Addr> {
        let number = self.lab.reserve_address();
        let number = number.context(format!("give pod {} one more address", self.name()))?;
        self.further_numbers.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        network::add_pod_address(&self.namespace, number)?;
        Ok(network::pod_address(number))
    }

    pub fn containers(&self) -> &[Container] {
        &self.containers
    }

    pub fn start(&mut self, spec: &ContainerSpec) -> Result<Container> {
        let pod = self.note.name.clone();
        let operation = || format!("start {pod}/{}", spec.name);
        check_name(&spec.name).context(operation())?;
        if self.containers.iter().any(|other| other.name() == spec.name && other.has_exited().is_none()) {
            return Err(EnvironmentError::new(operation(), "the pod has a container of that name already"));
        }
        // A container that has ended can be replaced; its cgroup keeps counting.
        self.containers.retain(|other| other.name() != spec.name);
        let cgroup = self.lab.cgroup().map(|cgroup| cgroup.create(&pod, &spec.name)).transpose()?;
        let Resources { cpu_limit_cores, memory_limit_bytes, .. } = spec.limits;
        if cpu_limit_cores.is_some() || memory_limit_bytes.is_some() {
            let Some(cgroup) = &cgroup else { return Err(self.lab.no_cgroup_for(&operation())) };
            cpu_limit_cores.map_or(Ok(()), |cores| cgroup.limit_cpu(cores))?;
            memory_limit_bytes.map_or(Ok(()), |bytes| cgroup.limit_memory(bytes))?;
        }
        let user = self.lab.user_of(spec.user);
        let program = if spec.confined.is_none() && user.is_some() {
            self.lab.expose_program(&spec.program)?
        } else {
            spec.program.clone()
        };
        let launch = Launch { pod: &pod, namespace: &self.namespace, cgroup, user, program };
        let container = container::start(launch, spec).map_err(|error| {
            let refused = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
            if spec.user != ContainerUser::Proxy
                || refused.is_none_or(|cause| cause.kind() != io::ErrorKind::PermissionDenied)
            {
                return error;
            }
            error.with_hint(format!(
                "user {PROXY_USER}, whom proxies run as, must be able to pass through all folders down to {}; {} names another \
                 place",
                self.lab.private_dir().display(),
                RUNTIME_VARIABLE
            ))
        })?;
        self.lab.log_limiter().add(container.log());
        self.containers.push(container.clone());
        let (name, program) = (spec.name.clone(), spec.program.clone());
        self.note.containers.retain(|other| other.name != name);
        self.note.containers.push(ContainerNote { name, pid_in_lab: container.pid(), program });
        self.lab.note_pod(self.number, &self.note)?;
        Ok(container)
    }

    pub fn redirect(&self, redirect: &Redirect) -> Result<()> {
        self.load_rules(redirect::rules(redirect, self.lab.proxy_identity()))
    }

    /// Loads rules into the pod's network namespace, in the format of `iptables-restore`, in addition to the
    /// existing ones.
    pub(crate) fn load_rules(&self, rules: String) -> Result<()> {
        let lock_file = self.iptables_lock()?;
        self.run(move || redirect::load(&rules, &lock_file))?
    }

    pub(crate) fn saved_rules(&self) -> Result<Vec<String>, String> {
        let lock_file = self.iptables_lock().map_err(|error| error_chain(&error))?;
        let saved = self.run(move || redirect::saved(&lock_file));
        saved.and_then(|saved| saved).map_err(|error| error_chain(&error))
    }

    /// Lock file shared by all programs that change rules of a lab's pods. It exists.
    pub(crate) fn iptables_lock(&self) -> Result<PathBuf> {
        let path = self.lab.private_dir().join("xtables.lock");
        let opened = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        opened.context(format!("make {}", path.display()))?;
        Ok(path)
    }

    /// Runs `work` on a thread in the pod's network namespace, where its sockets are opened. Not reentrant.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        self.namespace.run(work)
    }

    /// Waits until a process listens on this TCP port of the pod, without connecting to it. If `container`
    /// ends meanwhile, the error includes its last log lines.
    pub fn wait_until_listening(&self, container: &Container, port: u16, at_most: Duration) -> Result<()> {
        let what = format!("{}/{} listens on port {port}", self.name(), container.name());
        self.wait_until(container, &what, at_most, || self.run(move || is_listening(port)))
    }

    pub fn wait_until(
        &self,
        container: &Container,
        what: &str,
        at_most: Duration,
        is_so: impl Fn() -> Result<bool>,
    ) -> Result<()> {
        wait_for(what, at_most, || {
            self.lab.check_not_stopped()?;
            container.check(format!("wait until {what}"))?;
            Ok(is_so()?.then_some(()))
        })
    }

    /// Takes the pod down and reports what could not be removed, after removing the rest. Dropping it does
    /// the same silently.
    pub fn close(mut self) -> Result<()> {
        take_down(std::slice::from_mut(&mut self))
    }

    /// Takes pods down together, which takes about as long as one.
    pub fn close_all(mut pods: Vec<Self>) -> Result<()> {
        take_down(&mut pods)
    }

    fn numbers(&self) -> Vec<u16> {
        let further = self.further_numbers.lock().unwrap_or_else(PoisonError::into_inner);
        further.iter().copied().chain([self.number]).collect()
    }

    fn is_reaped(&self) -> bool {
        self.containers.iter().all(Container::reap_orphans)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        // Anything that cannot be removed here is removed when the lab's first process ends.
        let _ = take_down(std::slice::from_mut(self));
    }
}

/// Runs each step for all pods: the kernel deletes hundreds of links in about the time of one.
fn take_down(pods: &mut [Pod]) -> Result<()> {
    let pods: Vec<&Pod> =
        pods.iter_mut().filter_map(|pod| std::mem::take(&mut pod.open).then_some(&*pod)).collect();
    let Some(Pod { lab, .. }) = pods.first() else { return Ok(()) };
    let containers = || pods.iter().flat_map(|pod| &pod.containers);
    containers().for_each(Container::kill);
    containers().for_each(|container| lab.log_limiter().remove(container.log()));
    let ended = containers().map(|container| container.stop(ENDED_TIMEOUT).map(drop));
    let ended = ended.fold(Ok(()), Result::and);
    let strays = end_strays(&pods);
    pods.iter().for_each(|pod| pod.namespace.close());
    let disconnected = network::disconnect_pods(lab.switch(), pods.iter().map(|pod| pod.number).collect());
    let removed = pods.iter().map(|pod| {
        let removed = lab.cgroup().map_or(Ok(()), |cgroup| cgroup.remove_pod(pod.name()));
        lab.forget_pod(pod.number);
        removed
    });
    let removed = removed.fold(Ok(()), Result::and);
    // Addresses that something may still have are lost.
    if ended.is_ok() && strays.is_ok() && disconnected.is_ok() {
        lab.release_numbers(pods.iter().flat_map(|pod| pod.numbers()));
    }
    ended.and(strays).and(disconnected).and(removed)
}

/// Ends and reaps processes of the pods that left the process groups of their containers. They are found by
/// their network namespace: as orphans they have become children of the lab's first process, which is this
/// one.
fn end_strays(pods: &[&Pod]) -> Result<()> {
    let inode = |pod: &&Pod| Some(rustix::fs::fstat(pod.namespace.file()).ok()?.st_ino);
    let namespaces: BTreeSet<u64> = pods.iter().filter_map(inode).collect();
    let names: Vec<&str> = pods.iter().map(|pod| pod.name()).collect();
    let mut ended: Vec<Pid> = Vec::new();
    wait_for(&format!("no process is left in {}", names.join(", ")), ENDED_TIMEOUT, || {
        let pids = process_table::pids(Path::new("/proc")).context("list the lab's processes")?.into_iter();
        let is_left =
            |pid: &i32| *pid != 1 && network_of(*pid).is_some_and(|inode| namespaces.contains(&inode));
        let left: Vec<Pid> = pids.filter(is_left).filter_map(Pid::from_raw).collect();
        for &pid in &left {
            // Fails only if it has just ended.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        let all_gone = left.is_empty();
        ended.extend(left);
        // An error means that it is not our child, and another process reaps it.
        ended.retain(|&pid| matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(None)));
        Ok((all_gone && ended.is_empty() && pods.iter().all(|pod| pod.is_reaped())).then_some(()))
    })
}

/// Inode number of a process's network namespace; `None` for a dead process.
fn network_of(pid: i32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|file| file.st_ino())
}

/// True if a process of the calling thread's network namespace listens on this TCP port.
fn is_listening(port: u16) -> bool {
    let byte_order = ExplicitSystemInfo {
        is_little_endian: cfg!(target_endian = "little"),
        boot_time_secs: 0,
        ticks_per_second: 0,
        page_size: 0,
    };
    ["tcp", "tcp6"].iter().any(|table| {
        let sockets = TcpNetEntries::from_file(format!("/proc/thread-self/net/{table}"), &byte_order);
        let listens =
            |socket: &TcpNetEntry| socket.state == TcpState::Listen && socket.local_address.port() == port;
        sockets.is_ok_and(|sockets| sockets.0.iter().any(listens))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_name_file_is_reported_by_path() {
        check_name_place("/etc/hosts").expect("this machine has one");
        let error = check_name_place("/nowhere/resolv.conf").expect_err("there is none");
        assert!(error.to_string().contains("/nowhere/resolv.conf") && error.hint.is_some(), "{error}");
    }
}
