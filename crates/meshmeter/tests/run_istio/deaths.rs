//! Components that are killed, stopped or frozen during a trial. The trial ends immediately and is not valid,
//! with the component's name and last output in all results; the next trial starts clean.

use crate::process::{Place, Process};
use crate::run::{Ended, Scene, check_good};
use results::{TrialOutcome, TrialRecord};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Longer than any trial here would take if the failure went unnoticed.
const RUN_TIMEOUT: Duration = Duration::from_secs(400);

/// Window of an undisturbed trial, seconds.
const WINDOW_S: f64 = 2.0;

/// Minimum characters of a log line that the terminal shows.
const MIN_SHOWN_CHARACTERS: usize = 100;

/// What is done to a component during a trial.
struct Tampering {
    act: Act,
    place: Place,
    /// Name of the component that must be reported.
    named: &'static str,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Act {
    /// Kills it.
    Kill,
    /// Stops it with a signal.
    Stop,
    /// Freezes its control group: it neither dies nor is stopped, but does not run any more.
    Freeze,
}

const fn kill(place: Place, named: &'static str) -> Option<Tampering> {
    Some(Tampering { act: Act::Kill, place, named })
}

const fn stop(place: Place, named: &'static str) -> Option<Tampering> {
    Some(Tampering { act: Act::Stop, place, named })
}

const fn freeze(place: Place, named: &'static str) -> Option<Tampering> {
    Some(Tampering { act: Act::Freeze, place, named })
}

/// Nothing is done: the trial must be valid.
const NOTHING: Option<Tampering> = None;

pub fn components_that_die_or_stop_are_named() {
    use Place::{Anywhere, Beside};
    // At most two in a row: a run gives up after three failed trials.
    let tamperings = [
        kill(Anywhere("istiod"), "istiod"),
        stop(Anywhere("serve"), "server"),
        NOTHING,
        kill(Anywhere("etcd"), "etcd"),
        stop(Beside("envoy", "serve"), "server-proxy"),
        NOTHING,
        kill(Anywhere("kube-apiserver"), "kube-apiserver"),
        kill(Beside("pilot-agent", "load"), "client-proxy"),
        NOTHING,
        kill(Beside("envoy", "load"), "client-proxy"),
        kill(Anywhere("serve"), "server"),
        NOTHING,
        kill(Anywhere("load"), "generator"),
        stop(Anywhere("istiod"), "istiod"),
        NOTHING,
        stop(Anywhere("load"), "generator"),
        stop(Beside("pilot-agent", "serve"), "server-proxy"),
        NOTHING,
    ];
    do_to_each_trial("modes: [sidecar]", WINDOW_S, &tamperings);
}

pub fn components_that_hang_are_named() {
    use Place::{Anywhere, Beside};
    let tamperings = [
        freeze(Anywhere("istiod"), "istiod"),
        freeze(Beside("envoy", "load"), "client-proxy"),
        NOTHING,
        freeze(Anywhere("etcd"), "etcd"),
        freeze(Anywhere("serve"), "server"),
        NOTHING,
        freeze(Anywhere("kube-apiserver"), "kube-apiserver"),
        freeze(Beside("pilot-agent", "serve"), "server-proxy"),
        NOTHING,
    ];
    do_to_each_trial("modes: [sidecar]", WINDOW_S, &tamperings);
}

/// A long window in which nothing passes any more is cut short.
pub fn component_that_hangs_in_a_long_trial_ends_it() {
    const LONG_S: f64 = 15.0;
    let tampering = freeze(Place::Beside("envoy", "serve"), "server-proxy");
    let trials = do_to_each_trial("modes: [sidecar]", LONG_S, &[tampering, NOTHING]);
    assert!(trials[0].result.as_ref().is_none_or(|result| result.duration_s < 0.9 * LONG_S));
}

pub fn gateway_that_dies_or_stops_is_named() {
    let envoy = Place::Apart("envoy");
    let name = "ingress-gateway";
    do_to_each_trial(
        "modes: [ingress]",
        WINDOW_S,
        &[kill(envoy, name), stop(envoy, name), NOTHING, freeze(envoy, name)],
    );
}

pub fn ztunnel_that_dies_or_stops_is_named() {
    let ztunnel = Place::Anywhere("ztunnel");
    let waypoint = Place::Apart("envoy");
    do_to_each_trial(
        "modes: [ambient-waypoint]",
        WINDOW_S,
        &[
            kill(ztunnel, "ztunnel"),
            stop(ztunnel, "ztunnel"),
            NOTHING,
            kill(waypoint, "waypoint"),
            stop(waypoint, "waypoint"),
            NOTHING,
            freeze(ztunnel, "ztunnel"),
            freeze(waypoint, "waypoint"),
            NOTHING,
        ],
    );
}

/// A service of a graph, and the database that it and others query. Calls fail until the trial ends, which is
/// immediately.
pub fn component_that_dies_in_a_graph_is_named() {
    let database = kill(Place::Anywhere("ferretdb"), "db");
    let service = kill(Place::Service("flight"), "flight");
    let settings = "mesh: envoy\nmodes: [none]\ntopology: booking";
    do_to_each_trial(settings, WINDOW_S, &[database, NOTHING, service, NOTHING]);
}

/// A process that is frozen until this is dropped, which kills it.
struct Frozen(PathBuf);

impl Frozen {
    fn new(process: &Process) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("proc is mounted");
        let version_2 = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
        let mount = version_2.and_then(|line| line.split(' ').nth(1)).expect("control groups of version 2");
        let frozen = Self(PathBuf::from(mount).join(format!("meshmeter-test-{}", process.pid)));
        fs::create_dir(&frozen.0).expect("this test runs as root");
        let write = |file: &str, text: &str| fs::write(frozen.0.join(file), text).expect("it takes that");
        write("cgroup.procs", &process.pid.to_string());
        write("cgroup.freeze", "1");
        frozen
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // Empty if everything succeeded.
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        let _ = fs::remove_dir(&self.0);
    }
}

/// Runs one trial with these settings per deed, does the deed in its trial, and checks the outcome.
fn do_to_each_trial(settings: &str, window_s: f64, tamperings: &[Option<Tampering>]) -> Vec<TrialRecord> {
    let scene = Scene::new(&format!(
        "{settings}\nrepeats: {}\nload: {{rate: 100, connections: 4, warmup: 100ms, duration: {window_s}s, timeout: 2s}}\n",
        tamperings.len()
    ));
    let mut run = scene.start("out");
    let mut generator = None;
    let mut frozen = Vec::new();
    for tampering in tamperings {
        let current = run.await_other(Place::Anywhere("load"), generator.as_ref());
        if tampering.as_ref().is_some_and(|tampering| tampering.named == "generator") {
            // By then it has written some output.
            current.await_connections(1);
        }
        generator = Some(current);
        if let Some(tampering) = tampering {
            let process = run.await_process(tampering.place);
            match tampering.act {
                Act::Kill => process.signal(Signal::KILL),
                Act::Stop => process.signal(Signal::STOP),
                Act::Freeze => frozen.push(Frozen::new(&process)),
            }
        }
    }
    let ended = run.end_within(RUN_TIMEOUT);
    ended.check_status();
    let (trials, report) = (ended.trials(), ended.report());
    assert_eq!(trials.len(), tamperings.len(), "{}", ended.text());
    for (trial, tampering) in trials.iter().zip(tamperings) {
        match tampering {
            Some(tampering) => check_named(trial, tampering, &ended, &report),
            None => check_good(trial),
        }
    }
    trials
}

fn check_named(trial: &TrialRecord, tampering: &Tampering, ended: &Ended, report: &str) {
    let (name, verdict) = (tampering.named, &trial.verdict);
    assert_eq!(trial.outcome, TrialOutcome::Failed, "{name}: {verdict:?}");
    assert!(!verdict.valid);
    let reason = &verdict.reasons[0];
    let how = match (tampering.act, name) {
        (Act::Stop, _) => format!("{name} is unresponsive: "),
        (Act::Freeze, _) => format!("{name} is running but unresponsive: "),
        (_, "generator") => "the generator was ended by a signal".to_owned(),
        _ => format!("{name} has died: "),
    };
    assert!(reason.starts_with("failed: ") && reason.contains(&how), "{reason}");
    // The trial did not run for its whole window. A component that hangs may take that long to be detected.
    let cut_short = trial.result.as_ref().is_none_or(|result| result.duration_s < WINDOW_S);
    assert!(cut_short || tampering.act == Act::Freeze, "{name}");
    let others: Vec<&String> = trial.log_tails.keys().filter(|other| other.as_str() != name).collect();
    assert!(others.is_empty(), "{name}: {others:?} are said to have failed too");
    let number = trial.index + 1;
    let shown = ended.said.iter().position(|line| line.trim_start().starts_with(&format!("{number}/")));
    let shown = shown.unwrap_or_else(|| panic!("trial {number} is not on the terminal"));
    assert!(ended.said[shown].contains(&how), "{}", ended.said[shown]);
    // Where the rest is: once on the terminal, and in the report.
    if name != "generator" {
        let said = format!("all that {name} said is in ");
        let hint = trial.hints.iter().find(|hint| hint.starts_with(&said)).expect("a hint to the log");
        let times = ended.said.iter().filter(|line| line.trim() == format!("hint: {hint}")).count();
        assert_eq!(times, 1, "{hint}\n{}", ended.text());
        assert!(report.contains(&said), "{hint}");
    }
    let Some(last_line) = trial.log_tails[name].last() else {
        assert_eq!(name, "db", "it has said nothing: others write lines as they start");
        return;
    };
    // The terminal cuts long lines; only letters and digits are certain to be written alike there and in the
    // report.
    let start: String = last_line.chars().take(MIN_SHOWN_CHARACTERS).collect();
    let word = start.split(|letter: char| !letter.is_alphanumeric()).max_by_key(|word| word.len());
    let word = word.expect("splitting gives one part at least");
    let words_shown = |line: &String| line.trim_start().starts_with(name) && line.contains(word);
    assert!(ended.said[shown + 1..].iter().take(3).any(words_shown), "{word} of {name}\n{}", ended.text());
    assert!(report.contains(&format!("Last lines of {name}")) && report.contains(word), "{word} of {name}");
}
