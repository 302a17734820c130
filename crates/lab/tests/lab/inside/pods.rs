//! Pods and the network between them.

use super::{OrFail as _, Test};
use crate::ensure;
use crate::roles::{TEST_TIMEOUT, program};
use lab::{ContainerUser, Lab, Pod, PodSpec};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

pub const TESTS: &[Test] = &[
    ("two_pods_reach_each_other", two_pods_reach_each_other),
    ("pod_reaches_itself_on_loopback_and_own_address", a_pod_reaches_itself),
    ("lab_is_not_in_machine_network", not_in_the_machines_network),
    ("dropped_pod_is_removed_completely", dropped_pod_leaves_nothing),
    ("many_pods_are_created_and_removed_in_parallel", many_pods_are_created_and_removed_in_parallel),
    ("stray_process_ends_with_pod", stray_ends_with_its_pod),
    ("names_are_unique_and_checked", names_are_checked),
    ("outer_proc_shows_machine_processes", outer_proc_shows_the_machine),
    ("panic_in_pod_thread_is_error", panic_in_pod_is_an_error),
];

/// Listens in a pod and answers the first connection with these words.
pub fn answer_once(
    pod: &Pod,
    port: u16,
    words: &'static str,
) -> Result<std::thread::JoinHandle<SocketAddr>, String> {
    let listener = pod.run(move || TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))).or_fail()?.or_fail()?;
    Ok(std::thread::spawn(move || {
        let (mut stream, peer) = listener.accept().expect("a connection");
        stream.write_all(words.as_bytes()).expect("the client reads");
        peer
    }))
}

/// Connects from a pod and reads everything until the end of the connection.
pub fn ask(pod: &Pod, address: (Ipv4Addr, u16)) -> Result<String, String> {
    let asked = pod.run(move || {
        let mut stream = TcpStream::connect_timeout(&SocketAddr::from(address), TEST_TIMEOUT)?;
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    });
    asked.or_fail()?.or_fail()
}

fn two_pods_reach_each_other(lab: &Lab) -> Result<(), String> {
    let client = lab.create_pod(&PodSpec::new("client")).or_fail()?;
    let server = lab.create_pod(&PodSpec::new("server")).or_fail()?;
    let answered = answer_once(&server, 80, "hello")?;
    ensure(ask(&client, (server.address(), 80))? == "hello", "another answer")?;
    let peer = answered.join().map_err(|_| "the server panicked")?;
    ensure(peer.ip() == client.address(), format!("the server saw {peer}"))
}

fn a_pod_reaches_itself(lab: &Lab) -> Result<(), String> {
    let pod = lab.create_pod(&PodSpec::new("alone")).or_fail()?;
    for address in [Ipv4Addr::LOCALHOST, pod.address()] {
        let answered = answer_once(&pod, 8080, "me")?;
        ensure(ask(&pod, (address, 8080))? == "me", "another answer")?;
        answered.join().map_err(|_| "the server panicked")?;
    }
    let loopback_v6 = pod.run(|| TcpListener::bind("[::1]:0").map(drop)).or_fail()?;
    let has_v6 = Path::new("/proc/sys/net/ipv6").exists();
    ensure(loopback_v6.is_ok() == has_v6, format!("IPv6 loopback: {loopback_v6:?}"))
}

fn not_in_the_machines_network(lab: &Lab) -> Result<(), String> {
    let outer = fs::metadata(lab.host_proc_path().join("1/ns/net")).or_fail();
    let inner = fs::metadata("/proc/self/ns/net").or_fail()?;
    // An ordinary user may not inspect the machine's first process; then the interfaces have to do.
    if let Ok(outer) = outer {
        use std::os::unix::fs::MetadataExt as _;
        ensure(outer.ino() != inner.ino(), "the lab is in the machine's own network namespace")?;
    }
    let interfaces = fs::read_to_string("/proc/self/net/dev").or_fail()?;
    let names: Vec<&str> =
        interfaces.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
    let ours = |name: &&str| ["lo", "meshmeter0"].contains(name) || name.starts_with("pod");
    // The kernel may add fallback tunnels to every namespace (sit0, tunl0, …), which are down and have no
    // address.
    let others: Vec<_> = names.iter().filter(|name| !ours(name) && !name.ends_with('0')).collect();
    ensure(others.is_empty(), format!("interfaces of others: {others:?}"))
}

fn dropped_pod_leaves_nothing(lab: &Lab) -> Result<(), String> {
    let interfaces = || fs::read_to_string("/proc/self/net/dev").map(|text| text.lines().count()).or_fail();
    let before = interfaces()?;
    let mut pod = lab.create_pod(&PodSpec::new("short-lived")).or_fail()?;
    let container = pod.start(&program(lab, "sleeper", ContainerUser::Lab, &["role:sleep"])).or_fail()?;
    ensure(interfaces()? == before + 1, "the switch has no port for the pod")?;
    let process = PathBuf::from(format!("/proc/{}", container.pid()));
    ensure(process.exists(), "the process does not run")?;
    let directories: Vec<PathBuf> = ["cpu", "cpuacct", "memory"]
        .iter()
        .filter_map(|controller| container.cgroup()?.directory(controller).map(Path::to_owned))
        .collect();
    ensure(directories.iter().all(|directory| directory.exists()), "a cgroup is missing")?;
    drop(pod);
    ensure(container.has_exited().is_some(), "the process still runs")?;
    ensure(!process.exists(), "the process is still there")?;
    ensure(interfaces()? == before, "the switch still has the pod's port")?;
    let pod_directories = directories.iter().filter_map(|directory| directory.parent());
    let left: Vec<_> = pod_directories.filter(|directory| directory.exists()).collect();
    ensure(left.is_empty(), format!("cgroups are left: {left:?}"))
}

/// Pods can be created from several threads. The registry lists all of them, and nothing of them is left.
fn many_pods_are_created_and_removed_in_parallel(lab: &Lab) -> Result<(), String> {
    const THREADS: usize = 4;
    let interfaces = || fs::read_to_string("/proc/self/net/dev").map(|text| text.lines().count()).or_fail();
    let (before, known_before) = (interfaces()?, lab.status().or_fail()?.pods.len());
    let make = |name: String| {
        let mut pod = lab.create_pod(&PodSpec::new(name)).or_fail()?;
        pod.start(&program(lab, "sleeper", ContainerUser::Lab, &["role:sleep"])).or_fail()?;
        Ok(pod)
    };
    let pods: Result<Vec<Pod>, String> = std::thread::scope(|scope| {
        let make = &make;
        let some = move |thread| (0..5).map(|pod| make(format!("many-{thread}-{pod}"))).collect::<Vec<_>>();
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || some(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let pods = pods?;
    let containers: Vec<_> = pods.iter().flat_map(Pod::containers).cloned().collect();
    let known = lab.status().or_fail()?.pods;
    ensure(known.len() == known_before + 5 * THREADS, format!("the registry knows {} pods", known.len()))?;
    let with_process = known.iter().filter(|pod| pod.containers.iter().any(|process| process.pid.is_some()));
    ensure(with_process.count() >= 5 * THREADS, "the registry does not know the processes")?;
    ensure(interfaces()? == before + 5 * THREADS, "a pod has no port on the switch")?;
    Pod::close_all(pods).or_fail()?;
    ensure(containers.iter().all(|container| container.has_exited().is_some()), "a process still runs")?;
    ensure(interfaces()? == before, "the switch still has ports of pods")?;
    ensure(lab.status().or_fail()?.pods.len() == known_before, "the registry still knows pods")?;
    let cgroups = containers.iter().filter_map(|container| container.cgroup()?.directory("cpu"));
    let left: Vec<_> = cgroups.filter(|directory| directory.exists()).collect();
    ensure(left.is_empty(), format!("cgroups are left: {left:?}"))
}

fn stray_ends_with_its_pod(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("strays")).or_fail()?;
    let spec = program(lab, "leaver", ContainerUser::Lab, &["role:leave-stray"]);
    let container = pod.start(&spec).or_fail()?;
    let status = container.wait(TEST_TIMEOUT).ok_or("the parent does not end")?;
    ensure(status.success(), format!("the parent ended with {status}: {:?}", container.log_tail(5)))?;
    let stray = PathBuf::from(format!("/proc/{}", container.log_tail(1).concat()));
    ensure(stray.join("stat").exists(), format!("{} does not run", stray.display()))?;
    pod.close().or_fail()?;
    ensure(!stray.join("stat").exists(), "the stray is still there, be it only unburied")
}

fn names_are_checked(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("taken")).or_fail()?;
    ensure(lab.create_pod(&PodSpec::new("taken")).is_err(), "two pods of one name")?;
    ensure(lab.create_pod(&PodSpec::new("../up")).is_err(), "a name that leads out")?;
    pod.start(&program(lab, "app", ContainerUser::Lab, &["role:sleep"])).or_fail()?;
    ensure(
        pod.start(&program(lab, "app", ContainerUser::Lab, &["role:sleep"])).is_err(),
        "two containers of one name",
    )?;
    drop(pod);
    lab.create_pod(&PodSpec::new("taken")).or_fail().map(drop)
}

fn outer_proc_shows_the_machine(lab: &Lab) -> Result<(), String> {
    let outer = lab::process_table::pids(lab.host_proc_path()).or_fail()?;
    let inner = lab::process_table::pids(Path::new("/proc")).or_fail()?;
    ensure(
        inner.contains(&1) && outer.len() > inner.len(),
        format!("{} outside, {} inside", outer.len(), inner.len()),
    )
}

fn panic_in_pod_is_an_error(lab: &Lab) -> Result<(), String> {
    let pod = lab.create_pod(&PodSpec::new("panics")).or_fail()?;
    let result = pod.run(|| panic!("on purpose, seen in the test's output"));
    ensure(result.is_err(), "a panic passed for an answer")?;
    pod.close().or_fail()
}
