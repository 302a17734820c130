//! Processes: supervision, privileges, limits, accounting.

use super::{OrFail as _, Test};
use crate::ensure;
use crate::roles::{TEST_TIMEOUT, proc_file, program};
use experiment::environment::ErrorContext as _;
use experiment::topology::Resources;
use lab::{ContainerSpec, ContainerUser, Lab, PodSpec, ProxyIdentity};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("ended_process_is_reported_with_last_log_lines", end_is_noticed),
    ("process_ignoring_sigterm_is_killed_with_children", stubborn_process_is_killed),
    ("standard_error_can_be_read_while_running", error_output_is_piped),
    ("process_has_no_capabilities_and_no_open_files", no_rights),
    ("proxy_has_only_capabilities_for_its_identity", rights_of_a_proxy),
    ("proxy_program_may_be_in_directory_closed_to_proxy", program_in_closed_folder),
    ("cpu_limit_throttles_and_is_counted", cpu_limit),
    ("memory_is_counted", memory_is_counted),
    ("missing_program_is_error", no_such_program),
    ("wait_for_port_ends_when_open_or_process_has_ended", waiting_for_a_port),
];

fn shell(lab: &Lab, name: &str, script: &str) -> ContainerSpec {
    let mut spec = program(lab, name, ContainerUser::Lab, &["-c", script]);
    spec.program = "sh".into();
    spec
}

fn end_is_noticed(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let spec = shell(lab, "app", "echo first; echo last words >&2; exit 7");
    let container = pod.start(&spec).or_fail()?;
    let status = container.wait(TEST_TIMEOUT).ok_or("it does not end")?;
    ensure(status.code() == Some(7), format!("it ended with {status}"))?;
    ensure(container.has_exited() == Some(status), "its status is forgotten")?;
    ensure(container.log_tail(1) == ["last words"], format!("{:?}", container.log_tail(1)))?;
    let mode = fs::metadata(&spec.output_log).or_fail()?.permissions().mode() & 0o777;
    ensure(mode == 0o600, format!("others may read the log: {mode:o}"))
}

fn stubborn_process_is_killed(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let spec = shell(lab, "app", "trap '' TERM; sleep 60 & echo $!; wait");
    let container = pod.start(&spec).or_fail()?;
    let child =
        lab::wait_for("the child's number is logged", TEST_TIMEOUT, || Ok(container.log_tail(1).pop()))
            .or_fail()?;
    let status = container.stop(Duration::from_millis(50)).or_fail()?;
    ensure(status.signal() == Some(9), format!("it ended with {status}"))?;
    // The child is then an orphan and dies within moments; it is a zombie until the pod is removed.
    let child = child.parse().map_err(|_| "no number")?;
    lab::wait_for("the child is dead", TEST_TIMEOUT, || {
        let stat = lab::process_table::stat("/proc".as_ref(), child);
        Ok(stat.map_or(true, |stat| lab::process_table::is_dead(&stat)).then_some(()))
    })
    .or_fail()?;
    pod.close().or_fail()?;
    ensure(lab::process_table::stat("/proc".as_ref(), child).is_err(), "the child is not buried")
}

fn error_output_is_piped(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let mut spec = shell(lab, "app", "echo to the log; echo to us >&2");
    spec.pipe_error_output = true;
    let container = pod.start(&spec).or_fail()?;
    let mut output = String::new();
    container.take_error_output().ok_or("there is no pipe")?.read_to_string(&mut output).or_fail()?;
    ensure(output == "to us\n", format!("{output:?}"))?;
    ensure(container.take_error_output().is_none(), "it can be taken twice")?;
    container.wait(TEST_TIMEOUT).ok_or("it does not end")?;
    ensure(container.log_tail(5) == ["to the log"], format!("{:?}", container.log_tail(5)))
}

/// The value of a line of `/proc/<pid>/status`.
fn status_line(pid: u32, name: &str) -> String {
    let status = proc_file(pid, "status");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

const NO_CAPABILITIES: &str = "0000000000000000";
const NETWORK_ADMINISTRATION: &str = "0000000000001000";

fn no_rights(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let container = pod.start(&program(lab, "app", ContainerUser::Lab, &["role:sleep"])).or_fail()?;
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let capabilities = status_line(container.pid(), set);
        ensure(capabilities == NO_CAPABILITIES, format!("{set} is {capabilities}"))?;
    }
    ensure(status_line(container.pid(), "NoNewPrivs") == "1", "it may gain rights")?;
    let limits = proc_file(container.pid(), "limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap_or_default();
    ensure(core.split_whitespace().nth(4) == Some("0"), format!("core files: {core}"))?;
    let stat = proc_file(container.pid(), "stat");
    let group = stat.split_whitespace().nth(4).unwrap_or_default();
    ensure(group == container.pid().to_string(), "it is in the process group of another")?;
    // The loader has libraries open for a moment at the start.
    let only_three = lab::wait_for("it has nothing open beside the three", TEST_TIMEOUT, || {
        let open = fs::read_dir(format!("/proc/{}/fd", container.pid())).map(|open| open.flatten().count());
        Ok((open.ok() == Some(3)).then_some(()))
    });
    only_three.or_fail()
}

fn rights_of_a_proxy(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let proxy = pod.start(&program(lab, "proxy", ContainerUser::Proxy, &["role:sleep"])).or_fail()?;
    let users = status_line(proxy.pid(), "Uid");
    let capabilities = status_line(proxy.pid(), "CapEff");
    let (expected_users, expected_capabilities) = match lab.proxy_identity() {
        ProxyIdentity::Uid => ("1337 1337 1337 1337", NO_CAPABILITIES),
        ProxyIdentity::Mark => ("0 0 0 0", NETWORK_ADMINISTRATION),
    };
    ensure(users == expected_users, format!("users {users}"))?;
    ensure(capabilities == expected_capabilities, format!("capabilities {capabilities}"))?;
    let folder = lab.create_private_dir("proxy-keys", ContainerUser::Proxy).or_fail()?;
    let metadata = fs::metadata(&folder).or_fail()?;
    let owner = if lab.proxy_identity() == ProxyIdentity::Uid { 1337 } else { 0 };
    ensure(metadata.uid() == owner && metadata.mode() & 0o777 == 0o700, format!("{metadata:?}"))
}

fn program_in_closed_folder(lab: &Lab) -> Result<(), String> {
    let folder = lab.create_private_dir("closed", ContainerUser::Lab).or_fail()?;
    let binary = folder.join("copied-program");
    fs::copy(std::env::current_exe().or_fail()?, &binary).or_fail()?;
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let mut spec = program(lab, "proxy", ContainerUser::Proxy, &["role:sleep"]);
    spec.program = binary;
    let proxy = pod.start(&spec).or_fail()?;
    let name = proc_file(proxy.pid(), "comm");
    ensure(name.trim() == "copied-program", format!("it shows as {name:?} in process lists"))
}

fn cpu_limit(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let mut spec = program(lab, "spinner", ContainerUser::Lab, &["role:spin"]);
    spec.limits = Resources { memory_limit_bytes: Some(64 << 20), ..Resources::cpu_limit(Some(0.05)) };
    if lab.cgroup_version().is_none() {
        let error = pod.start(&spec).expect_err("there is nothing to limit it with");
        return ensure(error.hint.is_some(), "the error does not say what to do");
    }
    let spinner = pod.start(&spec).or_fail()?;
    let cgroup = spinner.cgroup().ok_or("it has no cgroup")?;
    let (before, began) = (cgroup.cpu_usage().or_fail()?, Instant::now());
    // The measurement needs time to pass; the process's end would end the wait.
    ensure(spinner.wait(Duration::from_millis(1500)).is_none(), "it ended")?;
    let (after, elapsed) = (cgroup.cpu_usage().or_fail()?, began.elapsed());
    let cores = (after.total - before.total).as_secs_f64() / elapsed.as_secs_f64();
    // A busy machine may leave it less than the limit.
    ensure((0.001..0.1).contains(&cores), format!("it used {cores:.3} cores"))?;
    let split_difference = after.total.abs_diff(after.user + after.system);
    ensure(
        split_difference < Duration::from_millis(50),
        format!("user and system are {split_difference:?} off the total"),
    )?;
    lab::wait_for("it is throttled", TEST_TIMEOUT, || {
        let throttling = cgroup.throttling().context("read how it is throttled")?;
        Ok((throttling.periods >= 5 && throttling.time_s > 0.1).then_some(()))
    })
    .or_fail()?;
    spec.name = "senseless".to_owned();
    spec.limits = Resources::cpu_limit(Some(f64::NAN));
    ensure(pod.start(&spec).is_err(), "a limit that is not a number is accepted")
}

fn memory_is_counted(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    // The shell holds some 16 MB in a variable, reports it, and waits to be ended.
    let script = "v=$(head -c 16000000 /dev/zero | tr '\\0' x); echo ${#v}; read never < /dev/zero; sleep 60";
    let spec = shell(lab, "holder", script);
    let container = pod.start(&spec).or_fail()?;
    let Some(cgroup) = container.cgroup() else {
        return ensure(lab.no_cgroup_because().is_some(), "there is no cgroup, and no reason why");
    };
    lab::wait_for("the memory is held", TEST_TIMEOUT, || {
        Ok((container.log_tail(1) == ["16000000"]).then_some(()))
    })
    .or_fail()?;
    let memory = cgroup.memory().or_fail()?;
    let anonymous = memory.anonymous_bytes.ok_or("no anonymous memory is counted")?;
    let working_set = memory.working_set_bytes.ok_or("no working set is counted")?;
    ensure(anonymous >= 15_000_000, format!("{memory:?}"))?;
    ensure(working_set >= anonymous / 2, format!("{memory:?}"))
}

fn no_such_program(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    for user in [ContainerUser::Lab, ContainerUser::Proxy] {
        let mut spec = program(lab, "ghost", user, &[]);
        spec.program = "/nonexistent/program".into();
        let error = pod.start(&spec).expect_err("there is no such program");
        ensure(error.to_string().contains("/nonexistent/program"), error.to_string())?;
    }
    let mut spec = program(lab, "logless", ContainerUser::Lab, &[]);
    spec.output_log = "/nonexistent/log".into();
    ensure(pod.start(&spec).is_err(), "it runs without a log")
}

fn waiting_for_a_port(lab: &Lab) -> Result<(), String> {
    let mut pod = lab.create_pod(&PodSpec::new("pod")).or_fail()?;
    let sleeper = pod.start(&program(lab, "sleeper", ContainerUser::Lab, &["role:sleep"])).or_fail()?;
    let short = Duration::from_millis(30);
    let error = pod.wait_until_listening(&sleeper, 8080, short).expect_err("nobody listens");
    ensure(error.to_string() == "wait until pod/sleeper listens on port 8080", error.to_string())?;
    let listener = pod.run(|| std::net::TcpListener::bind("0.0.0.0:8080")).or_fail()?.or_fail()?;
    pod.wait_until_listening(&sleeper, 8080, TEST_TIMEOUT).or_fail()?;
    drop(listener);
    let dead = pod.start(&shell(lab, "dead", "echo cannot bind >&2; exit 1")).or_fail()?;
    let began = Instant::now();
    let error = pod.wait_until_listening(&dead, 8080, TEST_TIMEOUT).or_fail().expect_err("it has ended");
    ensure(error.contains("cannot bind"), error)?;
    ensure(began.elapsed() < TEST_TIMEOUT, "it waited for the dead")
}
