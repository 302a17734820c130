//! Runs in an in-memory environment, whose trials end as each test scripts them.

use super::*;
use crate::commands::run::RunContext;
use experiment::environment::deploy::{Argument, ComponentFailure, DriverStart, Footprint, ServiceCount};
use experiment::environment::{LastLines, ServerSettings};
use experiment::topology::pair;
use experiment::{Experiment, Fresh};
use in_memory::{
    InMemory, Request, ScriptedComponent, ScriptedDriver, ScriptedError, ScriptedFailure, ScriptedGateway,
    ScriptedTrial,
};
use jiff::Timestamp;
use report::folder::{Existing, PROGRESS_FILE, TRIALS_FILE};
use results::{
    Factors, GatewayCounts, LoadResult, Mode, Role, TrialOutcome, TrialRecord, UnavailableMode, Verdict,
};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Two modes in three repeats; two trials may be rerun, once each.
const TEXT: &str = "{name: t, modes: [none, gateway], load: {rate: 200, duration: 5s, warmup: 1s, timeout: 2s}, repeats: 3, retakes: 1}";

/// A single trial.
const ONE_TRIAL: &str = "{name: t, modes: [gateway], load: {rate: 200, duration: 5s, warmup: 1s, timeout: 2s}, repeats: 1, retakes: 0}";

/// Course of a run.
struct Ran {
    /// Modes of the plan, in order.
    planned: Vec<Mode>,
    trials: Vec<TrialRecord>,
    requests: Vec<Request>,
    /// Duration by the run's clock.
    elapsed: Duration,
    ended: Result<(), Failure>,
    /// Text of `progress.jsonl` before the end of the run.
    progress: String,
}

impl Ran {
    /// Modes of the deployments.
    fn deployed(&self) -> Vec<Mode> {
        let deployed = |request: &Request| match request {
            Request::Deploy(mode, _) => Some(*mode),
            _ => None,
        };
        self.requests.iter().filter_map(deployed).collect()
    }

    /// For each trial, the trial that it is a rerun of.
    fn reruns(&self) -> Vec<Option<usize>> {
        self.trials.iter().map(|trial| Some(trial.retake.as_ref()?.of)).collect()
    }

    fn count(&self, of: impl Fn(&Request) -> bool) -> usize {
        self.requests.iter().filter(|request| of(request)).count()
    }

    fn first_reason(&self, trial: usize) -> &str {
        self.trials[trial].verdict.reasons.first().map_or("", String::as_str)
    }
}

fn result() -> LoadResult {
    let text = include_str!("../../../../tests/load-result.json");
    let result: LoadResult = serde_json::from_str(text).expect("a result as the generator writes it");
    LoadResult { verdict: Verdict { valid: true, ..Verdict::default() }, ..result }
}

fn good() -> ScriptedTrial {
    with_driver(driver())
}

fn driver() -> ScriptedDriver {
    ScriptedDriver::completes(result(), SECOND, 5 * SECOND)
}

fn with_driver(driver: ScriptedDriver) -> ScriptedTrial {
    ScriptedTrial { other_drivers: driver, ..ScriptedTrial::completes(result(), SECOND, 5 * SECOND) }
}

fn held_against_itself(reason: &str) -> ScriptedTrial {
    let verdict = Verdict { reasons: vec![reason.to_owned()], ..Verdict::default() };
    ScriptedTrial::completes(LoadResult { verdict, ..result() }, SECOND, 5 * SECOND)
}

fn late() -> ScriptedTrial {
    held_against_itself("schedule-lag: the generator itself was late")
}

fn saturated() -> ScriptedTrial {
    held_against_itself("saturated: 100/s completed of 200/s offered")
}

/// Other processes use CPU during the trial.
fn disturbed() -> ScriptedTrial {
    ScriptedTrial { other_processes_cores: 1.0, ..good() }
}

/// The pods do not come up.
fn broken() -> ScriptedTrial {
    ScriptedTrial { deploy_error: Some(ScriptedError::new("start gateway", "it has died")), ..good() }
}

fn server_fails(at: Duration, unresponsive: bool) -> ScriptedFailure {
    let failure = ComponentFailure { component: "server".into(), how: "was ended by signal 9".into() };
    ScriptedFailure { at, failure, unresponsive }
}

fn plan(text: &str) -> Plan {
    Plan::new(&Experiment::parse(text, "test").unwrap(), 1)
}

/// The same plan with several drivers, each in its own namespace.
fn with_drivers(drivers: usize, plan: Plan) -> Plan {
    let topology =
        Arc::new(pair(drivers, 2, experiment::Protocol::default(), &ServerSettings::default(), false, None));
    let mut plan = plan;
    for trial in &mut plan.trials {
        trial.spec.topology = Arc::clone(&topology);
    }
    plan
}

fn run(script: impl IntoIterator<Item = ScriptedTrial>) -> Ran {
    run_plan(&plan(TEXT), script)
}

/// Runs a single trial.
fn run_one(script: ScriptedTrial) -> Ran {
    run_plan(&plan(ONE_TRIAL), [script])
}

fn run_plan(plan: &Plan, script: impl IntoIterator<Item = ScriptedTrial>) -> Ran {
    run_after(Vec::new(), plan, script)
}

/// Continues a run that has these trials.
fn run_after(
    recorded: Vec<TrialRecord>,
    plan: &Plan,
    script: impl IntoIterator<Item = ScriptedTrial>,
) -> Ran {
    run_as(recorded, plan, script, false)
}

/// Like [`run_after`], with the stacks of components sampled if `profile` is true.
fn run_as(
    recorded: Vec<TrialRecord>,
    plan: &Plan,
    script: impl IntoIterator<Item = ScriptedTrial>,
    profile: bool,
) -> Ran {
    let scratch = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(scratch.path(), Existing::Keep).unwrap();
    let mut progress = RunProgress::new(plan, scratch.path());
    let mut environment = InMemory::new(script, good());
    let handle = environment.clone();
    let stop = || handle.stop_requested();
    let context = RunContext { stop: &stop, clock: &handle, live: None, profile };
    let before = recorded.len();
    let run = Coordinator::new(plan, &mut environment, &mut folder, &mut progress, context);
    let ended = run.after(recorded).run();
    assert_eq!(handle.deployments(), 0, "all are taken down");
    let progress_file = scratch.path().join(PROGRESS_FILE);
    let last_progress = fs::read_to_string(&progress_file).unwrap_or_default();
    drop(progress);
    assert!(!progress_file.exists(), "no trial is under way");
    let text = fs::read_to_string(scratch.path().join(TRIALS_FILE)).unwrap();
    let trials: Vec<TrialRecord> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(trials.iter().enumerate().all(|(index, trial)| trial.index == before + index));
    let planned = plan.trials.iter().map(|planned| planned.mode()).collect();
    let elapsed = experiment::environment::Clock::now(&handle);
    Ran { planned, trials, requests: handle.requests(), elapsed, ended, progress: last_progress }
}

mod comparison;
mod course;
mod fleets;
mod in_memory;
mod resumed;
mod several_drivers;
mod several_generators;
mod trial;

/// Arguments as one string; files by their names.
fn text_of(driver: &DriverStart) -> String {
    let words: Vec<&str> = driver
        .arguments
        .iter()
        .map(|argument| match argument {
            Argument::Text(text) => text.as_str(),
            Argument::File { name, .. } => name,
        })
        .collect();
    words.join(" ")
}

/// Value of an option.
fn option(driver: &DriverStart, name: &str) -> Option<String> {
    let text = text_of(driver);
    text.split(' ').skip_while(|word| *word != name).nth(1).map(str::to_owned)
}

/// Generators of the first trial, as they were started.
fn started(ran: &Ran) -> &[DriverStart] {
    let mut starts = ran.requests.iter().filter_map(|request| match request {
        Request::Start(generators) => Some(generators.as_slice()),
        _ => None,
    });
    starts.next().expect("generators are started")
}

/// Generators with the times at which they were told to open their windows.
fn released(ran: &Ran) -> Vec<(&str, Timestamp)> {
    let releases = ran.requests.iter().filter_map(|request| match request {
        Request::Release(name, at) => Some((name.as_str(), (*at).try_into().expect("a time of our days"))),
        _ => None,
    });
    releases.collect()
}

/// Makes a result distinct: merging the same measurement twice would be an error.
fn told_apart(driver: ScriptedDriver, name: &str) -> ScriptedDriver {
    driver.with_load(|result| result.urls = vec![name.to_owned()])
}
