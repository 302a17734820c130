//! Confined programs: what a hostile one reaches, and what an honest one needs.

use super::{OrFail as _, Test};
use crate::ensure;
use crate::roles::{TEST_TIMEOUT, proc_file, program};
use components::confined_answer_within;
use confinement::{Joinable, View};
use lab::{Confined, Container, ContainerSpec, ContainerUser, Lab, Pod, PodSpec, ProxyIdentity};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

pub const TESTS: &[Test] = &[
    ("intruder_in_container_reaches_nothing", container_of_intruder),
    ("intruder_that_is_asked_in_lab_reaches_nothing", question_to_intruder),
    ("confined_program_has_what_it_needs", needs_of_a_program),
    ("confined_program_ends_with_its_children", end_of_a_program),
    ("confined_program_ends_with_the_signal_that_it_got", signals_of_a_program),
    ("orphans_of_confined_program_are_reaped", orphans_of_a_program),
    ("missing_file_of_view_is_named", missing_file),
];

/// The test program itself, in a container that sees it and this directory only.
fn confined(
    lab: &Lab,
    name: &str,
    user: ContainerUser,
    directory: &Path,
    arguments: &[&str],
) -> ContainerSpec {
    let spec = program(lab, name, user, arguments);
    let view = View { readable: vec![spec.program.clone()], writable: vec![directory.to_owned()] };
    ContainerSpec { confined: Some(Confined { view, joinable: Joinable::Nothing }), ..spec }
}

fn shell(lab: &Lab, name: &str, user: ContainerUser, directory: &Path, script: &str) -> ContainerSpec {
    let spec = confined(lab, name, user, directory, &["-c", script]);
    ContainerSpec { program: "/bin/sh".into(), working_directory: Some(directory.to_owned()), ..spec }
}

/// Starts a program and waits until it says that it has started.
fn started(pod: &mut Pod, spec: &ContainerSpec) -> Result<Container, String> {
    let container = pod.start(spec).or_fail()?;
    lab::wait_for(
        "it has started",
        TEST_TIMEOUT,
        || Ok((container.log_tail(1) == ["started"]).then_some(())),
    )
    .or_fail()?;
    Ok(container)
}

/// A socket and a file that all users of the lab may use.
fn machine(lab: &Lab, name: &str) -> Result<(UnixListener, PathBuf, PathBuf), String> {
    let directory = lab.create_private_dir(name, ContainerUser::Lab).or_fail()?;
    let (socket, secret) = (directory.join("docker.sock"), directory.join("secret"));
    let listener = UnixListener::bind(&socket).or_fail()?;
    fs::write(&secret, "of the machine").or_fail()?;
    for path in [&directory, &socket, &secret] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).or_fail()?;
    }
    Ok((listener, socket, secret))
}

fn container_of_intruder(lab: &Lab) -> Result<(), String> {
    let (_listener, socket, secret) = machine(lab, "machine-of-containers")?;
    let arguments = ["role:intrude", &socket.to_string_lossy(), &secret.to_string_lossy()];
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    for (name, user, joinable) in [
        ("server", ContainerUser::Server, Joinable::Nothing),
        ("proxy", ContainerUser::Proxy, Joinable::Nothing),
        ("setup", ContainerUser::NetworkSetup, Joinable::Nothing),
        ("node", ContainerUser::NodeProxy, Joinable::Networks),
    ] {
        let own = lab.create_private_dir(&format!("own-{name}"), user).or_fail()?;
        let mut spec = confined(lab, name, user, &own, &arguments);
        spec.confined.as_mut().ok_or("it is confined")?.joinable = joinable;
        let container = pod.start(&spec).or_fail()?;
        container.wait(TEST_TIMEOUT).ok_or("it does not end")?;
        let said = container.log_tail(30);
        ensure(said == ["tried all"], format!("{name}: {said:?}"))?;
    }
    Ok(())
}

fn question_to_intruder(lab: &Lab) -> Result<(), String> {
    let (_listener, socket, secret) = machine(lab, "machine-of-questions")?;
    let program = std::env::current_exe().or_fail()?;
    let arguments = ["role:intrude", &socket.to_string_lossy(), &secret.to_string_lossy()];
    let output = confined_answer_within(&program, &arguments, &[], TEST_TIMEOUT).or_fail()?;
    ensure(output.stdout == b"tried all\n", format!("{output:?}"))
}

fn needs_of_a_program(lab: &Lab) -> Result<(), String> {
    let own = lab.create_private_dir("own-needs", ContainerUser::Server).or_fail()?;
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let script = "set -e; echo kept > file; echo scratch > /tmp/meshmeter-scratch; echo shared > /dev/shm/file; echo log > /dev/stdout
        head -c 4 /dev/urandom > random; echo renamed > /proc/self/task/$$/comm
        cat /etc/hosts /sys/devices/system/cpu/online /proc/net/dev > /dev/null; ls /sys/fs/cgroup /lib /usr/bin > /dev/null
        echo done; sleep 600";
    let container = pod.start(&shell(lab, "app", ContainerUser::Server, &own, script)).or_fail()?;
    lab::wait_for("it has done all", TEST_TIMEOUT, || {
        Ok((container.log_tail(2) == ["log", "done"] || container.has_exited().is_some()).then_some(()))
    })
    .or_fail()?;
    ensure(container.has_exited().is_none(), format!("{:?}", container.log_tail(5)))?;
    ensure(fs::read_to_string(own.join("file")).or_fail()? == "kept\n", "its file is not in the directory")?;
    let has_user = lab.privileges() == lab::Privileges::Root && lab.proxy_identity() == ProxyIdentity::Uid;
    let owner = fs::metadata(own.join("file")).or_fail()?.uid();
    ensure(owner == if has_user { 65532 } else { 0 }, format!("it runs as user {owner}"))?;
    // Debuggers and profilers find its program by the path that it has on the machine.
    let executable = fs::read_link(format!("/proc/{}/exe", container.pid())).or_fail()?;
    ensure(executable == fs::canonicalize("/bin/sh").or_fail()?, format!("{executable:?}"))?;
    ensure(!Path::new("/tmp/meshmeter-scratch").exists(), "its temporary files are the machine's")
}

fn end_of_a_program(lab: &Lab) -> Result<(), String> {
    let own = lab.create_private_dir("own-end", ContainerUser::Server).or_fail()?;
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let script = "setsid sh -c 'trap \"\" TERM INT HUP; echo started; while :; do sleep 1; done' & wait";
    let container = started(&mut pod, &shell(lab, "app", ContainerUser::Server, &own, script))?;
    let processes = lab::process_table::descendants(Path::new("/proc"), container.pid().cast_signed());
    ensure(processes.len() > 1, format!("{processes:?}"))?;
    let name = proc_file(container.pid(), "comm");
    ensure(!name.is_empty(), "it is not visible to the lab")?;
    pod.close().or_fail()?;
    let left = processes.iter().find(|pid| lab::process_table::stat("/proc".as_ref(), **pid).is_ok());
    ensure(left.is_none(), format!("process {left:?} is left"))
}

fn signals_of_a_program(lab: &Lab) -> Result<(), String> {
    let own = lab.create_private_dir("own-signals", ContainerUser::Server).or_fail()?;
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let script = "kill -ABRT $$; sleep 600";
    let aborted = pod.start(&shell(lab, "aborted", ContainerUser::Server, &own, script)).or_fail()?;
    let status = aborted.wait(TEST_TIMEOUT).ok_or("it survives its own signal")?;
    ensure(status.signal() == Some(6), format!("it ended with {status}"))?;
    let script = "exec sleep 600";
    let stopped = pod.start(&shell(lab, "stopped", ContainerUser::Server, &own, script)).or_fail()?;
    let status = stopped.stop(TEST_TIMEOUT).or_fail()?;
    ensure(status.signal() == Some(15), format!("it ended with {status}"))
}

fn orphans_of_a_program(lab: &Lab) -> Result<(), String> {
    let own = lab.create_private_dir("own-orphans", ContainerUser::Server).or_fail()?;
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let script = "(sh -c 'sleep 600; true' &); (true &); echo started; exec sleep 600";
    let container = started(&mut pod, &shell(lab, "app", ContainerUser::Server, &own, script))?;
    let namespace = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own_namespace = namespace(container.pid());
    ensure(own_namespace.is_some() && own_namespace != namespace(1), "it has no PID namespace")?;
    let living = || -> Result<Vec<u32>, String> {
        let pids = lab::process_table::pids(Path::new("/proc")).or_fail()?;
        Ok(pids.into_iter().map(i32::cast_unsigned).filter(|pid| namespace(*pid) == own_namespace).collect())
    };
    // Its first process, itself, and the living orphan with its child: the one that has ended is gone.
    lab::wait_for("the ended orphan is reaped", TEST_TIMEOUT, || {
        Ok((living().is_ok_and(|pids| pids.len() == 4)).then_some(()))
    })
    .or_fail()?;
    let processes = living()?;
    pod.close().or_fail()?;
    let left = processes.iter().find(|pid| namespace(**pid).is_some());
    ensure(left.is_none(), format!("process {left:?} is left"))
}

fn missing_file(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let missing = Path::new("/nonexistent/directory");
    let error = pod.start(&confined(lab, "app", ContainerUser::Server, missing, &["role:sleep"]));
    let text = crate::explain(&error.expect_err("a file of its view is missing"));
    ensure(text.contains("/nonexistent/directory"), text)
}
