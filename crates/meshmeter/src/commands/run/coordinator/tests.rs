//! Runs in an environment in memory, whose trials end as a test wants it.

use super::*;
use crate::commands::run::RunContext;
use experiment::environment::deploy::{Argument, ComponentFailure, DriverStart, Footprint, ServiceCount};
use experiment::environment::in_memory::{
    InMemory, Request, ScriptedComponent, ScriptedDriver, ScriptedError, ScriptedFailure, ScriptedGateway,
    ScriptedTrial,
};
use experiment::environment::{LastLines, ServerSettings};
use experiment::schema::{GatewayCounts, LoadResult, Role, TrialOutcome, TrialRecord, Verdict};
use experiment::topology::pair;
use experiment::{Experiment, Fresh, Mode};
use jiff::Timestamp;
use report::folder::{Existing, TRIALS_FILE};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Two modes in three repeats, of which two trials may run again: each once.
const TEXT: &str = "{name: t, modes: [none, gateway], load: {rate: 200, duration: 5s, warmup: 1s, timeout: 2s}, repeats: 3, retakes: 1}";

/// A single trial.
const ONE_TRIAL: &str = "{name: t, modes: [gateway], load: {rate: 200, duration: 5s, warmup: 1s, timeout: 2s}, repeats: 1, retakes: 0}";

/// What a run did.
struct Ran {
    /// The modes of the plan, in its order.
    planned: Vec<Mode>,
    trials: Vec<TrialRecord>,
    requests: Vec<Request>,
    /// Time that it took by its clock.
    elapsed: Duration,
    ended: Result<(), Failure>,
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

    /// Of which trial each is a rerun.
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

/// Others take a CPU.
fn disturbed() -> ScriptedTrial {
    ScriptedTrial { other_processes_cores: 1.0, ..good() }
}

/// Its pods do not come up.
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

/// The same plan with a driver in each of several namespaces.
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

/// The only trial of a run.
fn run_one(script: ScriptedTrial) -> Ran {
    run_plan(&plan(ONE_TRIAL), [script])
}

fn run_plan(plan: &Plan, script: impl IntoIterator<Item = ScriptedTrial>) -> Ran {
    let scratch = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(scratch.path(), Existing::Keep).unwrap();
    let mut progress = RunProgress::new(plan, scratch.path());
    let mut environment = InMemory::new(script, good());
    let handle = environment.clone();
    let stop = || handle.stop_requested();
    let context = RunContext { stop: &stop, clock: &handle, live: None };
    let ended = Coordinator::new(plan, &mut environment, &mut folder, &mut progress, context).run();
    assert_eq!(handle.deployments(), 0, "all are taken down");
    let text = fs::read_to_string(scratch.path().join(TRIALS_FILE)).unwrap();
    let trials: Vec<TrialRecord> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(trials.iter().enumerate().all(|(index, trial)| trial.index == index));
    let planned = plan.trials.iter().map(|planned| planned.mode).collect();
    let elapsed = experiment::environment::Clock::now(&handle);
    Ran { planned, trials, requests: handle.requests(), elapsed, ended }
}

mod fleets;

mod course {
    use super::*;

    #[test]
    fn what_the_machine_disturbed_is_taken_again_after_its_repeat() {
        let script = [late(), good(), good(), good(), good(), good(), disturbed(), late()];
        let ran = run(script);
        let [first, second, third, fourth, fifth, sixth] = ran.planned[..] else {
            panic!("{:?}", ran.planned)
        };
        assert_eq!(ran.deployed(), [first, second, first, third, fourth, fifth, sixth, sixth]);
        assert_eq!(ran.reruns(), [None, None, Some(0), None, None, None, None, Some(6)]);
        let repeats: Vec<usize> = ran.trials.iter().map(|trial| trial.repeat).collect();
        assert_eq!(repeats, [0, 0, 0, 1, 1, 2, 2, 2]);
        let again = ran.trials[7].retake.as_ref().unwrap();
        assert_eq!((again.take, &again.because), (2, &ran.trials[6].verdict.reasons));
        // Once each, whatever came of it.
        assert!(!ran.trials[7].verdict.valid && ran.trials[2].verdict.valid);
        assert!(ran.ended.is_ok());
    }

    #[test]
    fn what_the_mesh_did_is_not_taken_again() {
        let ran = run([saturated(), broken()]);
        assert_eq!(ran.reruns(), [None; 6]);
        assert_eq!(ran.trials[1].outcome, TrialOutcome::Failed);
    }

    #[test]
    fn a_run_on_a_noisy_machine_ends_with_a_third_more_trials() {
        let ran = run(vec![disturbed(); 20]);
        assert_eq!(ran.reruns(), [None, None, Some(0), Some(1), None, None, None, None]);
    }

    #[test]
    fn a_run_that_is_to_end_takes_nothing_again() {
        // During the first trial, the last of the repeat, and the first that is taken again.
        for (stops_during, trials) in [(0, 1), (1, 2), (2, 3)] {
            let mut script = vec![disturbed(); 20];
            script[stops_during].stop_at = Some(Duration::ZERO);
            let ran = run(script);
            assert_eq!(ran.trials.len(), trials);
            assert!(ran.ended.is_ok());
        }
    }

    #[test]
    fn takes_that_fail_are_failures_of_the_run() {
        let ran = run([disturbed(), disturbed(), broken(), broken(), broken()]);
        assert_eq!(ran.reruns(), [None, None, Some(0), Some(1), None]);
        assert!(ran.ended.is_err(), "three in a row");
    }

    #[test]
    fn a_mode_without_any_good_trial_is_a_failure_of_the_run() {
        let plan = plan(TEXT);
        let script = plan.trials.iter().map(|planned| match planned.mode {
            Mode::Gateway => broken(),
            _ => good(),
        });
        let ran = run_plan(&plan, script);
        assert_eq!(ran.trials.len(), 6, "the others are kept");
        let failure = format!("{:?}", ran.ended.unwrap_err());
        assert!(failure.contains("every trial of mode gateway failed"), "{failure}");
    }

    #[test]
    fn trials_of_a_mode_share_a_deployment_with_fresh_mode() {
        let text = "{name: t, modes: [none, gateway], load: {rate: [100, 200, 300], duration: 5s, warmup: 1s}, repeats: 2}";
        let experiment = Experiment { fresh: Some(Fresh::Mode), ..Experiment::parse(text, "test").unwrap() };
        let plan = Plan::new(&experiment, 1);
        let ran = run_plan(&plan, []);
        assert_eq!((ran.trials.len(), ran.deployed().len()), (12, 4), "a deployment per mode and repeat");
        let uses: Vec<(usize, usize)> = ran
            .trials
            .iter()
            .map(|trial| trial.deployment.unwrap())
            .map(|used| (used.number, used.trial))
            .collect();
        assert_eq!(
            uses,
            (0..4).flat_map(|number| (0..3).map(move |trial| (number, trial))).collect::<Vec<_>>()
        );
        for trials in ran.trials.chunks(3) {
            assert!(trials.iter().all(|trial| trial.mode == trials[0].mode && trial.verdict.valid));
        }
        assert!(ran.requests.contains(&Request::Deploy(ran.trials[3].mode, "deployment-001".into())));
        assert!(ran.requests.contains(&Request::BeginTrial("trial-011".into())));
        // Each warms up before its window.
        let starts = ran.requests.iter().filter_map(|request| match request {
            Request::Start(drivers) => Some(text_of(&drivers[0])),
            _ => None,
        });
        assert!(starts.clone().count() == 12 && starts.clone().all(|start| start.contains("--warmup 1s")));
    }

    #[test]
    fn a_failed_trial_ends_its_deployment() {
        let text = "{name: t, modes: [gateway], load: {rate: [100, 200, 300, 400], duration: 5s, warmup: 1s}, repeats: 1}";
        let experiment = Experiment { fresh: Some(Fresh::Mode), ..Experiment::parse(text, "test").unwrap() };
        let dies = ScriptedTrial { failure: Some(server_fails(2 * SECOND, false)), ..good() };
        let mut unproven = good();
        unproven.evidence.path.proven = false;
        let ran = run_plan(&Plan::new(&experiment, 1), [good(), dies, unproven]);
        let numbers: Vec<usize> = ran.trials.iter().map(|trial| trial.deployment.unwrap().number).collect();
        assert_eq!(numbers, [0, 0, 1, 2]);
        let valid: Vec<bool> = ran.trials.iter().map(|trial| trial.verdict.valid).collect();
        assert_eq!(valid, [true, false, false, true]);
        assert!(ran.ended.is_ok());
    }

    #[test]
    fn trials_of_their_own_deployment_share_its_label() {
        let ran = run_one(good());
        assert_eq!(
            ran.requests[..2],
            [Request::Deploy(Mode::Gateway, "trial-000".into()), Request::BeginTrial("trial-000".into())]
        );
    }

    #[test]
    fn a_deployment_that_cannot_be_removed_spoils_no_result() {
        let stuck = Some(ScriptedError::new("remove gateway", "it is busy"));
        let ran = run([ScriptedTrial { finish_error: stuck, ..good() }]);
        assert!(ran.ended.is_ok() && ran.trials.iter().all(|trial| trial.verdict.valid));
    }
}

mod trial {
    use super::*;

    #[test]
    fn a_good_trial_has_all_that_was_seen() {
        let mut script = good();
        let proxy = |name: &str| ScriptedComponent {
            name: name.to_owned(),
            role: Role::Proxy,
            cpu_cores: 0.25,
            throttled_periods_per_s: 0.0,
        };
        script.components = vec![proxy("gateway")];
        let footprint = Footprint { memory_before_load_bytes: Some(7), ..Footprint::default() };
        script.evidence.footprints.insert("gateway".to_owned(), footprint);
        let ran = run_one(script);
        let trial = &ran.trials[0];
        assert!(trial.verdict.valid, "{:?}", trial.verdict);
        let [generator, gateway, kernel] = &trial.components[..] else { panic!("{:?}", trial.components) };
        assert_eq!((generator.name.as_str(), kernel.role), ("generator", Role::Kernel));
        assert!((gateway.cpu_cores() - 0.25).abs() < 1e-6 && (gateway.window_s - 5.0).abs() < 1e-6);
        assert_eq!(gateway.memory_before_load_bytes, Some(7));
        assert!(generator.scheduling.is_some(), "its own count");
        assert_eq!(trial.machine.as_ref().unwrap().cpus, 2);
        let [driver] = &trial.drivers[..] else { panic!("{:?}", trial.drivers) };
        assert_eq!((driver.name.as_str(), driver.target.as_str()), ("generator", "server"));
        assert!(
            driver.result.is_none() && driver.verdict == trial.verdict,
            "those of a single one are the trial's"
        );
        let sent = result().requests.sent + result().warmup.sent;
        assert_eq!(trial.services[0].requests, Some(sent));
        assert_eq!(ran.count(|request| *request == Request::Snapshot), 2);
    }

    #[test]
    fn a_gateways_own_figures_are_of_the_window_and_its_counts_of_the_trial() {
        let sent = result().requests.sent + result().warmup.sent;
        let script = |gateway_requests: u64, forwarded: u64| {
            let mut script = good();
            let (name, targets) = ("gateway".to_owned(), vec!["server".to_owned()]);
            script.gateways = vec![ScriptedGateway { name, targets, requests_per_s: 40.0 }];
            let counts = GatewayCounts { requests: gateway_requests, forwarded, ..GatewayCounts::default() };
            script.evidence.gateways.insert("gateway".to_owned(), counts);
            script.evidence.services = vec![ServiceCount {
                name: "server".to_owned(),
                requests: Some(forwarded),
                ..ServiceCount::default()
            }];
            script
        };
        let ran = run_one(script(sent, sent));
        let trial = &ran.trials[0];
        assert!(trial.verdict.valid && trial.verdict.reasons.is_empty(), "{:?}", trial.verdict);
        let [gateway] = &trial.gateways[..] else { panic!("{:?}", trial.gateways) };
        assert_eq!((gateway.requests, gateway.window_s), (200, 5.0));
        let rates = trial.rates.unwrap();
        assert_eq!((rates.generator, rates.gateway, rates.destination), (40.0, Some(40.0), Some(40.0)));
        let ran = run_one(script(sent, sent - 50));
        let reason = ran.first_reason(0);
        assert!(reason.starts_with("rates-disagree: "), "{reason}");
        assert!(reason.contains("10.0/s were answered by the gateway itself"), "{reason}");
    }

    #[test]
    fn a_generator_is_started_with_its_load() {
        let text = "{name: t, modes: [gateway], load: {protocol: grpc, rate: 200, duration: 5s, warmup: 1s}, repeats: 1}";
        let plan = plan(text);
        let ran = run_plan(&plan, []);
        let Some(Request::Start(drivers)) = ran.requests.iter().find(|one| matches!(one, Request::Start(_)))
        else {
            panic!("{:?}", ran.requests)
        };
        let [driver] = &drivers[..] else { panic!("{drivers:?}") };
        let text = text_of(driver);
        assert!(text.starts_with("--rate 200 --arrival uniform"), "{text}");
        assert!(text.contains("--duration 5s") && text.ends_with("--proto echo.proto"), "{text}");
        assert!(text.contains(&format!("--seed {}", plan.trials[0].generator_seed)), "{text}");
        assert!(!text.contains("--start-at"), "it need not agree with anybody");
        let proto = driver.arguments.iter().find_map(|argument| match argument {
            Argument::File { content, .. } => Some(content.as_slice()),
            Argument::Text(_) => None,
        });
        assert_eq!(proto, Some(service::ECHO_PROTO.as_bytes()));
    }

    #[test]
    fn a_deployment_that_does_not_come_up_is_explained() {
        let lines = LastLines { component: "gateway".into(), lines: vec!["no port".into()] };
        let error = ScriptedError {
            hint: Some("free the port".into()),
            component: Some(lines),
            ..ScriptedError::new("start gateway", "it has died")
        };
        let ran = run_one(ScriptedTrial { deploy_error: Some(error), ..good() });
        let trial = &ran.trials[0];
        assert_eq!(ran.first_reason(0), "failed: start gateway: it has died");
        assert_eq!(trial.hints, ["free the port"]);
        assert_eq!(trial.log_tails["gateway"], ["no port"]);
        assert_eq!(trial.outcome, TrialOutcome::Failed);
        assert!(ran.ended.is_err(), "no trial of the mode was measured");
    }

    #[test]
    fn a_trial_that_does_not_begin_keeps_the_evidence() {
        for begins in [false, true] {
            let error = Some(ScriptedError::new("start the generator", "no memory"));
            let mut script = good();
            script.evidence.log_tails.insert("gateway".into(), vec!["killed".into()]);
            let script = match begins {
                false => ScriptedTrial { begin_error: error, ..script },
                true => ScriptedTrial { start_error: error, ..script },
            };
            let ran = run_one(script);
            assert_eq!(ran.first_reason(0), "failed: start the generator: no memory");
            assert_eq!(ran.trials[0].log_tails["gateway"], ["killed"]);
            assert_eq!(ran.count(|request| *request == Request::EndTrial(Vec::new())), 1);
        }
    }

    #[test]
    fn a_driver_that_exits_early_is_quoted() {
        let ran = run_one(with_driver(driver().dies_at(3 * SECOND, Some(3), "no route")));
        assert_eq!(ran.first_reason(0), "failed: the generator ended with status 3: no route");
        assert_eq!(ran.trials[0].log_tails["generator"], ["no route"]);
        let ran = run_one(with_driver(driver().dies_at(3 * SECOND, None, "")));
        assert_eq!(ran.first_reason(0), "failed: the generator was ended by a signal");
        assert!(ran.trials[0].result.is_none());
    }

    #[test]
    fn a_component_that_dies_at_once_with_its_connections_is_the_cause() {
        // Its end shows after that of the generator.
        let dies = ScriptedTrial {
            failure: Some(server_fails(3 * SECOND + Duration::from_millis(200), false)),
            ..with_driver(driver().dies_at(3 * SECOND, Some(3), "no route"))
        };
        assert_eq!(run_one(dies).first_reason(0), "failed: in the trial, server was ended by signal 9");
    }

    #[test]
    fn a_component_that_dies_in_the_window_ends_the_trial_and_what_was_measured_is_kept() {
        let ran = run_one(ScriptedTrial { failure: Some(server_fails(3 * SECOND, false)), ..good() });
        assert_eq!(ran.first_reason(0), "failed: in the trial, server was ended by signal 9");
        let kept = ran.trials[0].result.as_ref().unwrap();
        assert!(kept.duration_s < 3.0, "{}", kept.duration_s);
        assert_eq!(ran.count(|request| *request == Request::Interrupt("generator".into())), 1);
        assert!(ran.elapsed < 5 * SECOND, "{:?}", ran.elapsed);
    }

    #[test]
    fn an_unresponsive_component_is_found_where_nothing_is_answered() {
        let silent = |driver: ScriptedDriver| ScriptedTrial {
            failure: Some(server_fails(Duration::ZERO, true)),
            ..with_driver(driver)
        };
        let ran = run_one(silent(driver().unanswered_from(SECOND)));
        assert_eq!(ran.first_reason(0), "failed: in the trial, server was ended by signal 9");
        assert!(ran.elapsed < 6 * SECOND, "before the window's end: {:?}", ran.elapsed);
        // Where there were answers it is found after the window.
        let ran = run_one(silent(driver()));
        assert_eq!(ran.first_reason(0), "failed: in the trial, server was ended by signal 9");
        assert!(ran.elapsed > 6 * SECOND, "{:?}", ran.elapsed);
    }

    #[test]
    fn a_driver_that_hangs_is_interrupted_then_killed_then_given_up() {
        let hangs = driver().hangs_at(3 * SECOND);
        let ran = run_one(with_driver(hangs.clone()));
        assert_eq!(ran.first_reason(0), "failed: the generator did not end in time");
        assert_eq!(ran.count(|request| matches!(request, Request::Kill(_))), 0);
        assert!(ran.trials[0].result.is_some(), "it was interrupted");

        let stubborn = ScriptedDriver { ignores_interrupt: true, ..hangs };
        let ran = run_one(with_driver(stubborn.clone()));
        assert_eq!(ran.first_reason(0), "failed: the generator did not end in time");
        assert_eq!(ran.count(|request| matches!(request, Request::Kill(_))), 1);
        let failure = format!("{:?}", ran.ended.unwrap_err());
        assert!(failure.contains("wait for the generator: it had not ended after"), "{failure}");

        let ran = run_one(with_driver(ScriptedDriver { survives_kill: true, ..stubborn }));
        assert_eq!(ran.first_reason(0), "failed: the generator did not end in time");
        assert!(ran.elapsed < 60 * SECOND, "{:?}", ran.elapsed);
    }

    #[test]
    fn an_interruption_keeps_what_was_measured() {
        let ran = run([good(), ScriptedTrial { stop_at: Some(3 * SECOND), ..good() }]);
        assert_eq!(ran.trials.len(), 2);
        assert_eq!(ran.trials[1].outcome, TrialOutcome::Interrupted);
        assert_eq!(ran.first_reason(1), "interrupted: the run was stopped during this trial");
        assert!(ran.trials[1].result.is_some() && ran.trials[0].verdict.valid && ran.ended.is_ok());
        // A deployment that does not come up since the run was stopped is no failure.
        let ran = run([ScriptedTrial { stop_at: Some(Duration::ZERO), ..broken() }]);
        assert_eq!(ran.trials[0].outcome, TrialOutcome::Interrupted);
        assert!(ran.ended.is_ok());
    }

    #[test]
    fn a_snapshot_that_fails_is_named() {
        for number in [0, 1] {
            let error = ScriptedError::new("read the counters of server", "no such file");
            let ran = run_one(ScriptedTrial { snapshot_error: Some((number, error)), ..good() });
            assert_eq!(ran.first_reason(0), "failed: read the counters of server: no such file");
            assert!(ran.trials[0].components.is_empty() && ran.trials[0].result.is_some());
        }
    }

    #[test]
    fn an_unproven_path_is_not_valid_and_says_why() {
        let mut script = good();
        script.evidence.path.proven = false;
        script.evidence.path.reasons = vec!["gateway saw nothing".into()];
        let ran = run_one(script);
        assert_eq!(ran.first_reason(0), "path-not-proven: gateway saw nothing");
        assert_eq!(ran.trials[0].outcome, TrialOutcome::Finished);
        assert!(ran.ended.is_ok());
    }
}

/// Arguments as one text; of files their names.
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

/// The generators of the first trial, as they were started.
fn started(ran: &Ran) -> &[DriverStart] {
    let mut starts = ran.requests.iter().filter_map(|request| match request {
        Request::Start(generators) => Some(generators.as_slice()),
        _ => None,
    });
    starts.next().expect("generators are started")
}

/// Generators with the instants at which they were told to open their windows.
fn released(ran: &Ran) -> Vec<(&str, Timestamp)> {
    let releases = ran.requests.iter().filter_map(|request| match request {
        Request::Release(name, at) => Some((name.as_str(), (*at).try_into().expect("a time of our days"))),
        _ => None,
    });
    releases.collect()
}

/// A result of its own: the same measurement would not count twice.
fn told_apart(driver: ScriptedDriver, name: &str) -> ScriptedDriver {
    driver.with_load(|result| result.urls = vec![name.to_owned()])
}

mod several_generators {
    use super::*;
    const SHARED: &str = "{name: t, modes: [gateway], repeats: 1, retakes: 0, \
                          load: {rate: 200, duration: 5s, warmup: 1s, timeout: 2s, generators: 3}}";

    /// Three generators of one driver, of which the second is another.
    fn run_three(second: ScriptedDriver) -> Ran {
        let mut script = good();
        for (number, driver) in [driver(), second, driver()].into_iter().enumerate() {
            let name = format!("generator-{}", number + 1);
            script.drivers.insert(name.clone(), told_apart(driver, &name));
        }
        run_plan(&plan(SHARED), [script])
    }

    #[test]
    fn generators_start_together_with_a_share_each_and_have_one_result() {
        let ran = run_three(driver().ready_at(3 * SECOND));
        let trial = &ran.trials[0];
        assert!(trial.verdict.valid, "{:?}", trial.verdict);
        let generators = started(&ran);
        let shares: Vec<_> = generators.iter().map(|one| option(one, "--share").unwrap()).collect();
        assert_eq!(shares, ["1/3", "2/3", "3/3"]);
        assert_eq!(generators.iter().map(|one| one.pod).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(generators.iter().all(|one| one.verb.is_held() && one.driver == "generator"));
        assert!(generators.iter().all(|one| option(one, "--rate").unwrap() == "200"), "the rate of all");
        let seeds = |one: &DriverStart| option(one, "--seed");
        assert_eq!(seeds(&generators[0]), seeds(&generators[2]));
        let releases = released(&ran);
        assert_eq!(
            releases.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["generator-1", "generator-2", "generator-3"]
        );
        assert!(releases.iter().all(|(_, at)| *at == releases[0].1), "{releases:?}");
        // Ready after 3 s, then the warm-up of 1 s and the window of 5 s.
        assert!(ran.elapsed >= 9 * SECOND && ran.elapsed < 10 * SECOND, "{:?}", ran.elapsed);

        let [driver] = trial.drivers.as_slice() else { panic!("one driver: {:?}", trial.drivers) };
        assert!(driver.name == "generator" && driver.result.is_none(), "the trial has its result");
        let (one, all) = (result(), trial.result.as_ref().unwrap());
        assert_eq!(all.requests.sent, 3 * one.requests.sent);
        assert_eq!(all.response_time_us.count, 3 * one.response_time_us.count);
        let parts = &all.merged.as_ref().unwrap().parts;
        assert!(parts.iter().all(|part| part.result.is_none() && part.requests == one.requests.sent));
        assert_eq!(trial.services[0].requests, Some(3 * (one.requests.sent + one.warmup.sent)));
        let components = trial.components.iter().filter(|component| component.role == Role::Generator);
        let names: Vec<&str> = components.clone().map(|component| component.name.as_str()).collect();
        assert_eq!(names, ["generator-1", "generator-2", "generator-3"]);
        assert!(components.clone().all(|component| component.scheduling.is_some()));
    }

    #[test]
    fn a_generator_lost_in_the_window_ends_the_trial_and_spoils_all() {
        let ran = run_three(driver().dies_at(3 * SECOND, None, ""));
        let trial = &ran.trials[0];
        assert_eq!(ran.first_reason(0), "generator-lost: generator-2 was ended by a signal");
        assert_eq!(trial.verdict.spoiled_figures(), experiment::schema::Figures::all());
        assert_eq!((trial.outcome, trial.verdict.valid), (TrialOutcome::Failed, false));
        assert_eq!(ran.count(|request| matches!(request, Request::Interrupt(_))), 2, "the others");
        assert!(ran.elapsed < 6 * SECOND, "{:?}", ran.elapsed);
        assert_eq!(trial.result.as_ref().unwrap().merged.as_ref().unwrap().parts.len(), 2, "what is left");
    }

    #[test]
    fn a_generator_lost_before_the_start_releases_nobody() {
        let lost = driver().before_release(driver().dies_at(SECOND, Some(3), "out of memory"));
        let ran = run_three(lost);
        assert_eq!(ran.first_reason(0), "generator-lost: generator-2 ended with status 3: out of memory");
        assert_eq!(released(&ran), []);
        assert_eq!(ran.trials[0].log_tails["generator-2"], ["out of memory"]);
    }

    #[test]
    fn a_generator_that_is_never_ready_is_named() {
        let ran = run_three(driver().ready_at(1000 * SECOND));
        assert!(
            ran.first_reason(0).starts_with("generator-lost: generator-2 was not ready after"),
            "{}",
            ran.first_reason(0)
        );
        assert_eq!(released(&ran), []);
    }

    #[test]
    fn a_throttled_generator_is_named() {
        let mut script = good();
        script.components.push(ScriptedComponent {
            name: "generator-2".to_owned(),
            role: Role::Generator,
            cpu_cores: 0.1,
            throttled_periods_per_s: 10.0,
        });
        for number in 1..=3 {
            let name = format!("generator-{number}");
            script.drivers.insert(name.clone(), told_apart(driver(), &name));
        }
        let ran = run_plan(&plan(SHARED), [script]);
        assert!(ran.first_reason(0).starts_with("throttled: generator-2"), "{:?}", ran.trials[0].verdict);
    }
}

mod several_drivers {
    use super::*;

    const NAMES: [&str; 3] = ["pair-1/generator", "pair-2/generator", "pair-3/generator"];

    /// Three drivers, of which the second is another.
    fn run_three(second: ScriptedDriver) -> Ran {
        run_three_of(second, good())
    }

    fn run_three_of(second: ScriptedDriver, mut script: ScriptedTrial) -> Ran {
        for (name, driver) in [NAMES[0], NAMES[1], NAMES[2]].into_iter().zip([driver(), second, driver()]) {
            script.drivers.insert(name.to_owned(), told_apart(driver, name));
        }
        run_plan(&with_drivers(3, plan(ONE_TRIAL)), [script])
    }

    #[test]
    fn they_start_together_and_each_keeps_its_result() {
        let ran = run_three(driver());
        let trial = &ran.trials[0];
        assert!(trial.verdict.valid, "{:?}", trial.verdict);
        let names: Vec<&str> = trial.drivers.iter().map(|driver| driver.name.as_str()).collect();
        assert_eq!(names, NAMES);
        assert_eq!(
            (trial.drivers[1].namespace.as_str(), trial.drivers[1].target.as_str()),
            ("pair-2", "pair-2/server")
        );
        assert!(trial.drivers.iter().all(|driver| driver.result.is_some() && driver.verdict.valid));
        let (one, all) = (result(), trial.result.as_ref().unwrap());
        assert_eq!(all.requests.sent, 3 * one.requests.sent);
        assert_eq!(all.response_time_us.count, 3 * one.response_time_us.count);
        assert!(all.merged.as_ref().unwrap().parts.is_empty(), "they are stored once");
        let counts: Vec<Option<u64>> = trial.services.iter().map(|service| service.requests).collect();
        assert_eq!(counts, [Some(one.requests.sent + one.warmup.sent); 3]);
        assert_eq!(trial.services[2].components, ["pair-3/server-1", "pair-3/server-2"]);

        let drivers = started(&ran);
        assert!(drivers.iter().all(|driver| driver.verb.is_held()), "they connect first");
        let starts: Vec<Timestamp> = released(&ran).into_iter().map(|(_, start)| start).collect();
        // Evenly spread over the 5 ms between two requests of one driver: they never send at the same instant.
        let steps: Vec<i128> =
            starts.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_nanos()).collect();
        assert_eq!(steps, [1_666_667; 2], "{starts:?}");
        assert_ne!(option(&drivers[0], "--seed"), option(&drivers[1], "--seed"), "arrivals of their own");
    }

    #[test]
    fn the_window_lies_where_all_measure() {
        let ran = run_three(driver().delayed_by(Duration::from_millis(200)));
        let generator = &ran.trials[0].components[0];
        assert!((generator.window_s - 4.8).abs() < 1e-6, "{}", generator.window_s);
        assert_eq!(ran.count(|request| *request == Request::Snapshot), 2);
    }

    #[test]
    fn a_late_driver_spoils_its_own_figures_and_is_named() {
        let verdict = Verdict { reasons: vec!["schedule-lag: it was late".into()], ..Verdict::default() };
        let late = driver().with_load(|result| result.verdict = verdict.clone());
        let ran = run_three(late);
        assert_eq!(ran.trials[0].verdict.reasons, ["schedule-lag: pair-2/generator: it was late"]);
        let valid: Vec<bool> = ran.trials[0].drivers.iter().map(|driver| driver.verdict.valid).collect();
        assert_eq!(valid, [true, false, true]);
    }

    #[test]
    fn a_driver_that_dies_ends_the_trial_and_is_named() {
        let ran = run_three(driver().dies_at(3 * SECOND, Some(3), "no route"));
        let trial = &ran.trials[0];
        assert_eq!(ran.first_reason(0), "failed: driver pair-2/generator ended with status 3: no route");
        assert_eq!(trial.log_tails["pair-2/generator"], ["no route"]);
        assert_eq!(ran.count(|request| matches!(request, Request::Interrupt(_))), 2, "the others");
        let kept: Vec<bool> = trial.drivers.iter().map(|driver| driver.result.is_some()).collect();
        assert_eq!(kept, [true, false, true]);
        assert!(trial.drivers.iter().all(|driver| !driver.verdict.valid));
        assert!(ran.elapsed < 6 * SECOND, "{:?}", ran.elapsed);
    }

    #[test]
    fn a_driver_that_hangs_is_named() {
        let ran = run_three(driver().hangs_at(3 * SECOND));
        assert_eq!(ran.first_reason(0), "failed: driver pair-2/generator did not end in time");
        assert_eq!(ran.count(|request| matches!(request, Request::Interrupt(_))), 1, "the others have ended");
    }

    #[test]
    fn a_driver_whose_window_never_opens_leaves_the_trial_unobserved() {
        let ran = run_three(driver().delayed_by(6 * SECOND));
        let reasons = &ran.trials[0].verdict.reasons;
        assert!(reasons.iter().any(|reason| reason.starts_with("not-observed: ")), "{reasons:?}");
        assert!(ran.trials[0].components.is_empty());
    }
}
