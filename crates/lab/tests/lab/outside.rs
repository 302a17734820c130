//! The harness: runs the tests that run inside a lab in both kinds of labs, and kills labs to see what they
//! leave.

mod stage;

use crate::ensure;
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::Signal;
use stage::{Held, Stage, User};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Time limit for all tests inside a lab; they take seconds.
const INSIDE_TIMEOUT: Duration = Duration::from_secs(300);

type Test = (&'static str, fn(&Stage) -> Result<(), String>);

const TESTS: &[Test] = &[
    ("from_within", from_within),
    ("ctrl_c_ends_lab_cleanly", interrupt),
    ("early_signal_is_not_lost", early_signal),
    ("sigquit_ends_lab_at_once", quit),
    ("second_ctrl_c_ends_lab_at_once", two_interrupts),
    ("second_ctrl_c_ends_stopped_lab", two_interrupts_of_stopped_lab),
    ("kill_9_of_the_outer_process", kill_outer),
    ("kill_9_of_the_inner_process", kill_inner),
    ("kill_9_of_both", kill_both),
    ("lab_down_ends_running_lab", down_ends_a_running_lab),
    ("two_labs_are_independent", two_labs),
    ("next_lab_removes_remains_of_killed_one", next_lab_cleans),
    ("next_lab_removes_cgroups_without_registry_entry", next_lab_removes_unknown_groups),
    ("taking_down_unknown_lab_is_error", no_such_lab),
    ("registry_writable_by_others_is_rejected", open_registry),
];

/// Runs the harness. Root tests labs of root, of an ordinary user, and of one with subordinate users
/// (`/etc/subuid`) if this machine has one. An ordinary user tests only their own labs. The others are shown
/// as ignored.
pub fn run() -> ExitCode {
    let arguments = Arguments::from_args();
    let is_root = rustix::process::geteuid().is_root();
    let mut trials = Vec::new();
    let subordinates = User::with_subordinates();
    for user in [User::Root, User::Ordinary, subordinates.unwrap_or(User::Subordinates(0, 0))] {
        let can_be = match user {
            User::Root => is_root,
            User::Ordinary => true,
            User::Subordinates(..) => is_root && subordinates.is_some(),
        };
        let of_its_own = matches!(user, User::Subordinates(..))
            .then_some(("proxies_have_a_user", proxies_have_a_user as _));
        for &(name, test) in TESTS.iter().chain(of_its_own.as_ref()) {
            let trial = Trial::test(format!("{}::{name}", user.name()), move || {
                let stage = Stage::set(user)?;
                test(&stage).and_then(|()| stage.nothing_is_left()).map_err(Failed::from)
            });
            trials.push(trial.with_ignored_flag(!can_be));
        }
    }
    trials.push(
        Trial::test("version_2_groups_are_made_filled_read_and_removed", || {
            version_2().map_err(Failed::from)
        })
        .with_ignored_flag(!is_root || stage::v2_mount().is_none()),
    );
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn from_within(stage: &Stage) -> Result<(), String> {
    let (status, output) = stage.run(&["role:inside"], INSIDE_TIMEOUT)?;
    ensure(status.success(), format!("{status}\n{output}"))
}

/// Checks that the tests inside were run in a lab with a user for proxies, not in one that fell back to
/// marks.
fn proxies_have_a_user(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.hold()?;
    let labs = stage.labs()?;
    let proxy = labs[0].pods[0].containers.get(1).and_then(|proxy| proxy.pid).ok_or("it is not known")?;
    let map = std::fs::read_to_string(format!("/proc/{proxy}/uid_map")).map_err(|error| error.to_string())?;
    let mapped = map.lines().nth(1).and_then(|line| line.split_ascii_whitespace().nth(1)).map(str::to_owned);
    let status =
        std::fs::read_to_string(format!("/proc/{proxy}/status")).map_err(|error| error.to_string())?;
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().next());
    ensure(
        mapped.is_some() && user == mapped.as_deref(),
        format!("it is user {user:?}, and the map is {map:?}"),
    )?;
    lab.signal_outer(Signal::INT);
    lab.ended()?;
    lab.nothing_is_left(stage)
}

fn interrupt(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.hold()?;
    lab.signal_outer(Signal::INT);
    let status = lab.ended()?;
    ensure(status.success(), format!("it ended with {status}"))?;
    lab.nothing_is_left(stage)
}

fn early_signal(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.start_holding()?;
    // The outer process handles signals once it has recorded the lab; the inner one is only being started
    // then.
    stage.wait_until("a lab is written down", || Ok(!stage.labs()?.is_empty()))?;
    lab.signal_outer(Signal::TERM);
    lab.ended()?;
    ensure(stage.labs()?.is_empty(), "the lab is still written down")
}

fn quit(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.hold()?;
    lab.signal_outer(Signal::QUIT);
    let status = lab.ended()?;
    ensure(status.code() == Some(137), format!("it ended with {status}"))?;
    lab.nothing_is_left(stage)
}

fn two_interrupts(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.hold()?;
    // While it is stopped, the lab's first process cannot end between the two.
    lab.signal_inner(Signal::STOP);
    lab.signal_outer(Signal::INT);
    lab.signal_outer(Signal::TERM);
    lab.signal_inner(Signal::CONT);
    lab.ended()?;
    lab.nothing_is_left(stage)
}

fn two_interrupts_of_stopped_lab(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.hold()?;
    lab.signal_inner(Signal::STOP);
    lab.signal_outer(Signal::INT);
    lab.signal_outer(Signal::TERM);
    let status = lab.ended()?;
    ensure(status.code() == Some(137), format!("it ended with {status}"))?;
    lab.nothing_is_left(stage)
}

fn kill_outer(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.hold()?;
    lab.signal_outer(Signal::KILL);
    lab.ended()?;
    lab.wait_until_no_process_is_left(stage)?;
    ensure(!stage.labs()?[0].running, "it is said to run")?;
    stage.down(&lab.id)?;
    lab.nothing_is_left(stage)
}

fn kill_inner(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.hold()?;
    lab.signal_inner(Signal::KILL);
    let status = lab.ended()?;
    ensure(status.code() == Some(3), format!("the outer process ended with {status}"))?;
    // The outer process has removed the rest, so there is nothing to take down.
    lab.nothing_is_left(stage)
}

fn kill_both(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.hold()?;
    lab.signal_outer(Signal::STOP);
    lab.signal_inner(Signal::KILL);
    lab.signal_outer(Signal::KILL);
    lab.ended()?;
    // At once, and without its name: the killed lab is found.
    stage.clear()?;
    lab.nothing_is_left(stage)
}

fn down_ends_a_running_lab(stage: &Stage) -> Result<(), String> {
    let mut lab = stage.hold()?;
    let labs = stage.labs()?;
    let held = labs.iter().find(|held| held.id == lab.id).ok_or("it is not listed")?;
    ensure(held.running && held.processes >= 5, format!("{held:?}"))?;
    let pods: Vec<&str> = held.pods.iter().map(|pod| pod.name.as_str()).collect();
    ensure(pods == ["client", "server"], format!("{pods:?}"))?;
    let app = held.pods[0].containers[0].pid.ok_or("the app's number is not known")?;
    ensure(Path::new(&format!("/proc/{app}")).exists(), "the app's number is wrong")?;
    let address = stage.run_command(&held.pods[1].enter, &["ip", "-brief", "address", "show", "eth0"])?;
    ensure(address.contains(&held.pods[1].address), format!("entered, the pod has {address:?}"))?;
    stage.down(&lab.id)?;
    lab.ended()?;
    lab.nothing_is_left(stage)
}

fn two_labs(stage: &Stage) -> Result<(), String> {
    let (mut one, mut other) = (stage.hold()?, stage.hold()?);
    ensure(one.id != other.id && one.network()? != other.network()?, "they share something")?;
    stage.down(&one.id)?;
    one.ended()?;
    one.nothing_is_left(stage)?;
    let labs = stage.labs()?;
    ensure(labs.len() == 1 && labs[0].id == other.id && labs[0].running, format!("{labs:?}"))?;
    ensure(labs[0].pods.len() == 2, "the other has lost pods")?;
    other.signal_outer(Signal::TERM);
    ensure(other.ended()?.success(), "the other did not end well")?;
    other.nothing_is_left(stage)
}

fn next_lab_cleans(stage: &Stage) -> Result<(), String> {
    let mut killed = stage.hold()?;
    killed.signal_outer(Signal::KILL);
    killed.ended()?;
    killed.wait_until_no_process_is_left(stage)?;
    let mut next = stage.hold()?;
    killed.nothing_is_left(stage)?;
    next.signal_outer(Signal::INT);
    next.ended()?;
    next.nothing_is_left(stage)
}

/// If a test was killed, its registry is in a directory that nobody searches.
fn next_lab_removes_unknown_groups(stage: &Stage) -> Result<(), String> {
    let mut killed = stage.hold()?;
    killed.signal_outer(Signal::KILL);
    killed.ended()?;
    killed.wait_until_no_process_is_left(stage)?;
    stage.forget(&killed.id)?;
    let (mut next, mut another) = (stage.hold()?, stage.hold()?);
    killed.nothing_is_left(stage)?;
    // Its own groups are left alone.
    next.signal_outer(Signal::INT);
    ensure(next.ended()?.success(), "the next lab did not end well")?;
    another.signal_outer(Signal::INT);
    ensure(another.ended()?.success(), "the lab after it did not end well")
}

fn no_such_lab(stage: &Stage) -> Result<(), String> {
    let (status, output) = stage.run(&["role:down", "nosuch"], INSIDE_TIMEOUT)?;
    ensure(!status.success() && output.contains("there is no such lab"), format!("{status}: {output}"))?;
    let (status, output) = stage.run(&["role:down"], INSIDE_TIMEOUT)?;
    ensure(status.success() && output.trim() == "[]", format!("{status}: {output}"))
}

fn open_registry(stage: &Stage) -> Result<(), String> {
    stage.open_registry_to_others()?;
    let (status, output) = stage.run(&["role:hold"], INSIDE_TIMEOUT)?;
    ensure(
        status.code() == Some(3) && output.contains("others may write to it"),
        format!("{status}: {output}"),
    )?;
    stage.remove_registry()
}

/// Version 2 as far as this machine has it: even without controllers, its cgroups hold and count processes.
fn version_2() -> Result<(), String> {
    let mount = stage::v2_mount().ok_or("no hierarchy of version 2 is mounted")?;
    let all_labs = mount.join("meshmeter");
    let directory = all_labs.join(format!("test-{}", std::process::id()));
    let candidate = lab::cgroup::tree::v2(directory.clone(), &[]);
    let (lab, _locks) = lab::cgroup::tree::establish(&[candidate]).map_err(|error| error.to_string())?;
    let result = (|| {
        let group = lab.create("pod", "container").map_err(|error| crate::explain(&error))?;
        let mut spinner =
            std::process::Command::new(std::env::current_exe().map_err(|error| error.to_string())?)
                .arg("role:spin")
                .spawn()
                .map_err(|error| error.to_string())?;
        let path = group.directory("cpu").ok_or("it has no folder")?;
        let moved = std::fs::write(path.join("cgroup.procs"), spinner.id().to_string());
        let used = lab::wait_for("10 ms of CPU are counted", Duration::from_secs(60), || {
            let usage = group.cpu_usage();
            Ok(usage.ok().filter(|usage| usage.total > Duration::from_millis(10)))
        });
        let processes = group.processes();
        let _ = spinner.kill();
        let _ = spinner.wait();
        moved.map_err(|error| error.to_string())?;
        used.map_err(|error| crate::explain(&error))?;
        let processes = processes.map_err(|error| error.to_string())?;
        ensure(processes == [i32::try_from(spinner.id()).unwrap_or(0)], format!("{processes:?}"))
    })();
    let removed = lab::cgroup::tree::remove_lab(&directory).map_err(|error| crate::explain(&error));
    result?;
    ensure(removed?, "there was nothing to remove")?;
    ensure(!directory.exists(), "the group is still there")
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end_at_once();
    }
}
