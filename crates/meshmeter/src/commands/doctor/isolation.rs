//! Namespaces, cgroups and redirection, each tried once in a scratch pod of this lab, and disk space for its
//! files.

use super::check::Check;
use crate::memory::gibibytes;
use components::{Component, Overrides, find};
use experiment::environment::{EnvironmentError, ErrorContext as _, error_chain};
use experiment::topology::Resources;
use lab::redirect::{OUTBOUND_PORT, PROXY_USER, ProxyIdentity, Redirect};
use lab::registry::RUNTIME_VARIABLE;
use lab::{Confined, ContainerSpec, ContainerUser, Lab, Pod, PodSpec, Privileges};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::statvfs;
use rustix::net::sockopt::ip_original_dst;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// Starting a program that prints its version takes milliseconds, longer from a cold disk.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(20);
/// A connection within a pod takes microseconds.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);
/// TEST-NET-1 (RFC 5737), which has no hosts: only a redirected connection succeeds.
const NOWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 80);
const CPU_LIMIT_CORES: f64 = 0.5;
/// A control plane's etcd takes 130 MB before its first object, and proxy logs grow.
const COMFORTABLE_DISK_BYTES: u64 = 1 << 30;

pub(super) fn checks(lab: &Lab, overrides: &Overrides) -> Vec<Check> {
    let mut pod = match lab.create_pod(&PodSpec::new("doctor")) {
        Ok(pod) => pod,
        Err(error) => {
            return vec![failure("namespaces", &error, "the kernel must have bridges and veth pairs")];
        }
    };
    vec![
        namespaces(lab),
        process(lab, &mut pod, overrides),
        cgroups(lab),
        redirection(lab, &pod),
        proxy_user(lab),
        disk(lab),
    ]
}

/// Static Envoys work without a user of their own, so its absence is only a warning.
fn proxy_user(lab: &Lab) -> Check {
    match lab.no_proxy_user() {
        None => {
            Check::ok("proxy user", format!("proxies run as a user of their own, {PROXY_USER}, as in Istio"))
        }
        Some(missing) => Check::warn(
            "proxy user",
            format!("`mesh: istio` cannot run sidecars, gateways and waypoints: {}", missing.reason),
            missing.hint.clone(),
        ),
    }
}

fn namespaces(lab: &Lab) -> Check {
    let rights = match lab.privileges() {
        Privileges::Root => "as root",
        Privileges::UserNamespace => "as an ordinary user, in a user namespace",
    };
    Check::ok(
        "namespaces",
        format!("process, mount and network namespaces, bridge and veth pair made {rights}"),
    )
}

/// Runs a program in the pod the way a proxy runs: Envoy, or any other program if there is none.
fn process(lab: &Lab, pod: &mut Pod, overrides: &Overrides) -> Check {
    let (program, confined) = match find(Component::Envoy, overrides) {
        Ok(envoy) => (envoy.path.clone(), Confined::for_programs(&[&envoy])),
        Err(_) => (PathBuf::from("true"), Some(Confined::default())),
    };
    let spec = ContainerSpec {
        arguments: vec!["--version".into()],
        limits: Resources::cpu_limit(lab.cgroup_version().map(|_| CPU_LIMIT_CORES)),
        user: ContainerUser::Proxy,
        confined,
        ..ContainerSpec::new("probe", &program, lab.private_dir().join("doctor.log"))
    };
    let confinement = if spec.confined.is_some() { "confined" } else { "not confined, since you named it" };
    let remedy = "see that the program may be run by users other than its owner, from that place";
    match run_to_end(pod, &spec) {
        Ok(()) => Check::ok(
            "processes",
            format!("{} ran in a pod, as a proxy's user, {confinement}", program.display()),
        ),
        Err(error) => failure("processes", &error, remedy),
    }
}

fn run_to_end(pod: &mut Pod, spec: &ContainerSpec) -> Result<(), EnvironmentError> {
    let operation = format!("run {} in a pod", spec.program.display());
    let container = pod.start(spec)?;
    let Some(status) = container.wait(PROGRAM_TIMEOUT) else {
        return Err(EnvironmentError::new(
            operation,
            format!("not ended after {} s", PROGRAM_TIMEOUT.as_secs()),
        ));
    };
    if !status.success() {
        return Err(container.ended_early(operation, status));
    }
    if let Some(cgroup) = container.cgroup() {
        let usage = cgroup.cpu_usage().context("read a cgroup's CPU")?;
        if usage.total.is_zero() {
            return Err(EnvironmentError::new(
                "read a cgroup's CPU",
                "it counted nothing of a program that ran",
            ));
        }
    }
    Ok(())
}

fn cgroups(lab: &Lab) -> Check {
    match lab.cgroup_version() {
        Some(version) => Check::ok(
            "cgroups",
            format!("{version}: CPU counted and limited, memory counted for each component"),
        ),
        None => Check::warn(
            "cgroups",
            format!("none: {}", lab.no_cgroup_because().unwrap_or("none can be made")),
            "CPU comes from /proc, CPU limits are refused. As root they work; as an ordinary user of cgroup v2 under \
             `systemd-run --user --scope -p Delegate=yes`",
        ),
    }
}

/// A run whose disk fills up loses its control plane midway.
fn disk(lab: &Lab) -> Check {
    let folder = lab.private_dir();
    match statvfs(folder) {
        Ok(disk) => disk_check(disk.f_bavail.saturating_mul(disk.f_frsize)),
        Err(error) => Check::warn(
            "disk",
            format!("how much is free at {}: {error}", folder.display()),
            "see that its file system works",
        ),
    }
}

fn disk_check(free_bytes: u64) -> Check {
    let fact = format!("{} free for the files of labs", gibibytes(free_bytes));
    if free_bytes >= COMFORTABLE_DISK_BYTES {
        Check::ok("disk", fact)
    } else {
        let remedy = format!(
            "free some, or name a folder on another disk in {RUNTIME_VARIABLE}: a run with a full disk breaks off"
        );
        Check::warn("disk", fact, remedy)
    }
}

fn redirection(lab: &Lab, pod: &Pod) -> Check {
    let redirect = Redirect { outbound: true, inbound_ports: vec![8080], ..Redirect::default() };
    let tried = pod.redirect(&redirect).and_then(|()| pod.run(redirected_to_proxy)).and_then(|destination| {
        let operation = "open a connection through the redirection";
        match destination {
            Ok(destination) if destination == NOWHERE => Ok(()),
            Ok(other) => {
                Err(EnvironmentError::new(operation, format!("it arrived with destination {other}")))
            }
            Err(error) => Err(EnvironmentError::new(operation, error)),
        }
    });
    let known_by = match lab.proxy_identity() {
        ProxyIdentity::Uid => "user",
        ProxyIdentity::Mark => "socket mark",
    };
    match tried {
        Ok(()) => Check::ok(
            "redirect",
            format!(
                "iptables: a connection arrived at the proxy's port; proxies are identified by their {known_by}"
            ),
        ),
        Err(error) => failure("redirect", &error, "install iptables"),
    }
}

/// Connects to an address without a host and returns the original destination seen at the proxy's port.
fn redirected_to_proxy() -> io::Result<SocketAddrV4> {
    let proxy = TcpListener::bind((Ipv4Addr::UNSPECIFIED, OUTBOUND_PORT))?;
    let _application = TcpStream::connect_timeout(&NOWHERE.into(), CONNECTION_TIMEOUT)?;
    let limit = Timespec::try_from(CONNECTION_TIMEOUT).map_err(io::Error::other)?;
    if poll(&mut [PollFd::new(&proxy, PollFlags::IN)], Some(&limit))? == 0 {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not arrive at the proxy's port"));
    }
    let (arrived, _) = proxy.accept()?;
    Ok(ip_original_dst(&arrived)?)
}

/// A check that failed. The error's own hint comes before the general remedy.
pub(super) fn failure(name: &str, error: &EnvironmentError, remedy: &str) -> Check {
    Check::missing(name, error_chain(error), error.hint.as_deref().unwrap_or(remedy))
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn almost_full_disk_is_warning() {
        let full = disk_check(300 << 20);
        assert_eq!((full.state, full.fact.as_str()), (State::Warn, "0.3 GiB free for the files of labs"));
        assert_eq!(disk_check(40 << 30).state, State::Ok);
    }
}
