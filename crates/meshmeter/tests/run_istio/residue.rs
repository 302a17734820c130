//! What a run leaves on the machine: nothing, however it ends.

use crate::process::{Place, Process};
use crate::run::{Run, Scene, check_good};
use rustix::process::{Signal, test_kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Timeout for a run to end, which takes a few seconds.
const END_TIMEOUT: Duration = Duration::from_secs(120);
const RUN_TIMEOUT: Duration = Duration::from_secs(400);

const ONE_TRIAL: &str =
    "modes: [sidecar]\nrepeats: 1\nload: {rate: 100, connections: 4, warmup: 100ms, duration: 500ms}\n";
/// Longer than any test: a run next to others on a busy machine stays in its first trial until it is stopped.
const LONG_TRIALS: &str =
    "modes: [sidecar]\nrepeats: 3\nload: {rate: 100, connections: 4, warmup: 100ms, duration: 15m}\n";

/// State of the machine in which a run could leave something behind.
#[derive(Debug, Eq, PartialEq)]
struct Machine {
    mounts: String,
    interfaces: BTreeSet<String>,
    shared_memory: BTreeSet<String>,
    rules: String,
}

impl Machine {
    fn now() -> Self {
        let rules = Command::new("iptables-save").output().expect("iptables is installed").stdout;
        let rules = String::from_utf8_lossy(&rules).into_owned();
        Self {
            mounts: fs::read_to_string("/proc/self/mountinfo").expect("proc is mounted"),
            interfaces: names(Path::new("/sys/class/net")),
            shared_memory: names(Path::new("/dev/shm")),
            // Comments contain times, and counters traffic.
            rules: rules.lines().filter(|line| line.starts_with('-')).collect::<Vec<_>>().join("\n"),
        }
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect::<Vec<_>>());
    entries.unwrap_or_default().iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// What a run has while it is under way, and must not have afterwards.
struct Belongings {
    processes: BTreeSet<Process>,
    control_groups: Vec<PathBuf>,
    folder: PathBuf,
}

impl Belongings {
    fn for_run(scene: &Scene, run: &Run) -> Self {
        let outer = run.pid().as_raw_nonzero().get();
        let labs = names(&scene.path("m/labs")).into_iter().map(|id| scene.path("m/labs").join(id));
        let record = |folder: &PathBuf| -> serde_json::Value {
            let text = fs::read(folder.join("lab.json")).unwrap_or_default();
            serde_json::from_slice(&text).unwrap_or_default()
        };
        let folder = labs.into_iter().find(|folder| record(folder)["outer"]["pid"] == outer);
        let folder = folder.expect("a lab that goes on is written down");
        let directories = record(&folder)["cgroup_directories"].clone();
        let control_groups: Vec<PathBuf> = serde_json::from_value(directories).expect("paths");
        assert!(control_groups.iter().any(|group| group.exists()), "this test needs control groups");
        Self { processes: run.processes().0, control_groups, folder }
    }

    fn check_gone(&self) {
        let left: Vec<&Process> = self.processes.iter().filter(|process| process.is_alive()).collect();
        assert!(left.is_empty(), "processes are left: {left:?}");
        let left: Vec<&PathBuf> = self.control_groups.iter().filter(|group| group.exists()).collect();
        assert!(left.is_empty(), "control groups are left: {left:?}");
        assert!(!self.folder.exists(), "{} is left", self.folder.display());
    }
}

/// Checks the scene once nothing of it runs any more.
fn check_scene(scene: &Scene, machine: &Machine) {
    assert!(!scene.path("m").exists(), "the runtime folder holds {:?}", names(&scene.path("m/labs")));
    assert_eq!(names(&scene.path("tmp")), BTreeSet::new());
    assert_eq!(Machine::now(), *machine);
}

/// The run that gets a signal when its last trial has ended and it is about to write the report, which
/// changes nothing.
const SIGNALLED: usize = 3;

fn interrupt_report(run: &mut Run) {
    run.await_line("1/1");
    // It may have ended already.
    if test_kill_process(run.pid()).is_ok() {
        run.signal(Signal::INT);
    }
}

pub fn five_runs_in_a_row_leave_nothing_and_a_late_signal_changes_nothing() {
    let (scene, machine) = (Scene::new(ONE_TRIAL), Machine::now());
    for number in 1..=5 {
        let mut run = scene.start(&format!("out-{number}"));
        run.await_process(Place::Anywhere("load"));
        let belongings = Belongings::for_run(&scene, &run);
        assert!(belongings.processes.len() > 8, "{:?}", belongings.processes);
        if number == SIGNALLED {
            interrupt_report(&mut run);
        }
        let ended = run.end_within(RUN_TIMEOUT);
        ended.check_status();
        ended.trials().iter().for_each(check_good);
        assert!(ended.report().contains("</html>"));
        belongings.check_gone();
        check_scene(&scene, &machine);
    }
    let expected = ["experiment.yaml", "out-1", "out-2", "out-3", "out-4", "out-5", "tmp"];
    assert_eq!(names(&scene.path("")), expected.map(str::to_owned).into());
}

/// One run continues while others next to it are killed and taken down.
pub fn leftovers_of_kill_9_are_taken_down_and_a_running_lab_is_not() {
    let (scene, machine) = (Scene::new(LONG_TRIALS), Machine::now());
    let mut living = scene.start("living");
    let generator = living.await_process(Place::Anywhere("load"));
    let of_living = Belongings::for_run(&scene, &living);
    for (name, stage, outer_dies, inner_dies) in [
        ("outer", "load", true, false),
        ("inner", "istiod", false, true),
        ("both", "pilot-agent", true, true),
    ] {
        let mut run = scene.start(name);
        run.await_process(Place::Anywhere(stage));
        let belongings = Belongings::for_run(&scene, &run);
        let outer = run.pid().as_raw_nonzero().get();
        let processes = run.processes();
        let inner = processes.inner(outer).expect("a lab has a first process");
        if inner_dies && outer_dies {
            // Stopped, so that one cannot clean up after the other.
            run.signal(Signal::STOP);
        }
        if inner_dies {
            inner.signal(Signal::KILL);
        }
        if outer_dies {
            run.signal(Signal::KILL);
        }
        let ended = run.end_within(END_TIMEOUT);
        assert_eq!(ended.status, (!outer_dies).then_some(3), "{name}: {}", ended.text());
        down(&scene);
        belongings.check_gone();
        assert!(generator.is_alive(), "{name}: the other run is not touched");
        assert!(of_living.processes.iter().all(Process::is_alive), "{name}");
        assert!(of_living.folder.exists(), "{name}");
    }
    living.signal(Signal::INT);
    let ended = living.end_within(END_TIMEOUT);
    assert_eq!(ended.trials()[0].verdict.reasons[0], "interrupted: the run was stopped during this trial");
    of_living.check_gone();
    check_scene(&scene, &machine);
}

fn down(scene: &Scene) {
    let output = scene.meshmeter().args(["lab", "down"]).output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// When a run is interrupted, as a process that exists in its lab then.
const STAGES: [(&str, Place); 4] = [
    ("the start of the control plane", Place::Anywhere("etcd")),
    ("the wait for istiod", Place::Anywhere("istiod")),
    ("bringing up", Place::Anywhere("pilot-agent")),
    ("a trial", Place::Anywhere("load")),
];

pub fn one_signal_ends_a_run_with_results_so_far() {
    let (scene, machine) = (Scene::new(LONG_TRIALS), Machine::now());
    for ((what, place), signal) in
        STAGES.into_iter().zip([Signal::INT, Signal::TERM, Signal::HUP, Signal::INT])
    {
        let mut run = scene.start(what);
        run.await_process(place);
        let belongings = Belongings::for_run(&scene, &run);
        let began = Instant::now();
        run.signal(signal);
        let ended = run.end_within(END_TIMEOUT);
        println!("  {signal:?} in {what}: ended after {:.2} s", began.elapsed().as_secs_f64());
        assert_eq!(ended.status, Some(1), "{what}: {}", ended.text());
        let trials = ended.trials();
        assert_eq!(trials.len(), 1, "{what}");
        let reason = &trials[0].verdict.reasons[0];
        assert_eq!(reason, "interrupted: the run was stopped during this trial", "{what}");
        assert!(ended.report().contains("</html>"));
        belongings.check_gone();
        check_scene(&scene, &machine);
    }
}

/// The second signal ends a run immediately, in any stage.
pub fn a_second_signal_ends_a_run_and_leaves_nothing() {
    let (scene, machine) = (Scene::new(LONG_TRIALS), Machine::now());
    for (what, place) in [STAGES[0], STAGES[3]] {
        let mut run = scene.start(what);
        run.await_process(place);
        let belongings = Belongings::for_run(&scene, &run);
        run.signal(Signal::INT);
        run.signal(Signal::TERM);
        let ended = run.end_within(END_TIMEOUT);
        // It may have ended before the second signal.
        assert!(matches!(ended.status, Some(1 | 130 | 143)), "{what}: {:?}", ended.status);
        assert!(!ended.folder.join("trials.jsonl").exists() || ended.trials().len() <= 1);
        belongings.check_gone();
        check_scene(&scene, &machine);
    }
}
