//! Order of trials, reruns and interruption.

use super::*;
use results::{ComponentsSecond, GeneratorSecond, TrialUnderWay};

#[test]
fn trials_disturbed_by_machine_are_rerun_after_their_repeat() {
    let script = [late(), good(), good(), good(), good(), good(), disturbed(), late()];
    let ran = run(script);
    let [first, second, third, fourth, fifth, sixth] = ran.planned[..] else { panic!("{:?}", ran.planned) };
    assert_eq!(ran.deployed(), [first, second, first, third, fourth, fifth, sixth, sixth]);
    assert_eq!(ran.reruns(), [None, None, Some(0), None, None, None, None, Some(6)]);
    let repeats: Vec<usize> = ran.trials.iter().map(|trial| trial.repeat).collect();
    assert_eq!(repeats, [0, 0, 0, 1, 1, 2, 2, 2]);
    let again = ran.trials[7].retake.as_ref().unwrap();
    assert_eq!((again.take, &again.because), (2, &ran.trials[6].verdict.reasons));
    // Each trial is rerun once, whatever the outcome.
    assert!(!ran.trials[7].verdict.valid && ran.trials[2].verdict.valid);
    assert!(ran.ended.is_ok());
}

#[test]
fn progress_file_has_the_trial_under_way_second_by_second() {
    let ran = run([late()]);
    let mut lines = ran.progress.lines();
    let trial = TrialUnderWay::from_json(lines.next().unwrap()).unwrap();
    // The last of six trials and a rerun.
    assert_eq!((trial.ended, trial.trials), (6, 7), "{trial:?}");
    assert_eq!(trial.title, format!("{} at 200/s, repeat 3", ran.trials[6].mode));
    assert!(trial.rest_s >= 0.0 && trial.started_at.parse::<Timestamp>().is_ok(), "{trial:?}");
    let seconds = lines.filter_map(|line| GeneratorSecond::from_json(line).ok());
    let seconds: Vec<(f64, u64)> =
        seconds.map(|second| (second.second.t_s, second.second.completed)).collect();
    assert_eq!(seconds, [0.0, 1.0, 2.0, 3.0, 4.0].map(|t_s| (t_s, 100)));
}

/// Times of the readings of components in the progress file, and the CPU of the proxy at each.
fn usage_by_second(reading_usage_takes: Duration) -> Vec<(f64, f64)> {
    let (name, role) = ("proxy".to_owned(), Role::Proxy);
    let proxy = ScriptedComponent { name, role, cpu_cores: 0.25, throttled_periods_per_s: 0.0 };
    let ran = run_one(ScriptedTrial { components: vec![proxy], reading_usage_takes, ..good() });
    let seconds = ran.progress.lines().filter_map(|line| ComponentsSecond::from_json(line).ok());
    let of_proxy = |second: ComponentsSecond| {
        assert_eq!(second.components.len(), 2, "the driver and the proxy: {second:?}");
        let proxy = second.components.iter().find(|component| component.name == "proxy").unwrap();
        assert_eq!(proxy.memory_bytes, Some(1 << 20));
        (second.t_s, (proxy.cpu_cores * 1e6).round() / 1e6)
    };
    seconds.map(of_proxy).collect()
}

#[test]
fn components_are_read_once_per_second_of_the_window_and_less_often_if_that_takes_long() {
    assert_eq!(usage_by_second(Duration::ZERO), [1.0, 2.0, 3.0, 4.0, 5.0].map(|t_s| (t_s, 0.25)));
    let slow = usage_by_second(Duration::from_millis(40));
    let times: Vec<f64> = slow.iter().map(|(t_s, _)| t_s.floor()).collect();
    assert_eq!((times, slow.iter().all(|(_, cpu_cores)| *cpu_cores == 0.25)), (vec![1.0, 3.0, 5.0], true));
}

#[test]
fn stacks_are_sampled_between_the_snapshots_of_the_window() {
    let profiled = |script| run_as(Vec::new(), &plan(ONE_TRIAL), [script], true);
    let sampled = |ran: &Ran| -> Vec<Request> {
        let of_window = [Request::Snapshot, Request::BeginProfile, Request::EndProfile];
        ran.requests.iter().filter(|request| of_window.contains(request)).cloned().collect()
    };
    let expected = [Request::Snapshot, Request::BeginProfile, Request::Snapshot, Request::EndProfile];
    assert_eq!(sampled(&profiled(good())), expected);
    assert_eq!(sampled(&run_one(good())), [Request::Snapshot, Request::Snapshot]);
    let failed =
        ScriptedTrial { profile_error: Some(ScriptedError::new("start perf", "not here")), ..good() };
    let ran = profiled(failed);
    assert!(
        !ran.trials[0].verdict.valid && !ran.trials[0].verdict.reasons.is_empty(),
        "{:?}",
        ran.trials[0].verdict
    );
}

/// Whichever modes cannot run, in whichever order, with or without factors.
#[test]
fn trial_is_named_deployed_and_proven_as_one_mode() {
    let all = ["none", "sidecar", "ambient", "ingress"];
    for (first, left_out) in (0..all.len()).flat_map(|first| (0..16_usize).map(move |set| (first, set))) {
        for factors in ["connections: 4", "connections: [2, 4]", "connections: [2, 4], payload: [1KiB, 2KiB]"]
        {
            let mut order = all;
            order.rotate_left(first);
            let text = format!(
                "{{name: t, mesh: istio, modes: [{}], repeats: 1, \
                 load: {{rate: 200, duration: 5s, warmup: 1s, timeout: 2s, {factors}}}}}",
                order.join(", ")
            );
            let mut experiment = Experiment::parse(&text, "test").unwrap();
            let cannot_run = |mode: Mode| {
                let place = all.iter().position(|name| *name == mode.name()).unwrap();
                left_out >> place & 1 == 1
            };
            let unavailable = experiment.modes.iter().filter(|mode| cannot_run(**mode));
            let unavailable = unavailable.map(|mode| UnavailableMode {
                mode: *mode,
                factors: Factors::new(),
                reason: "no ztunnel".to_owned(),
                hint: None,
            });
            let unavailable: Vec<UnavailableMode> = unavailable.collect();
            experiment.leave_out(&unavailable);
            let plan = Plan::new(&experiment, 1);
            let ran = run_plan(&plan, []);
            assert_eq!(ran.trials.len(), plan.trials.len(), "{text} {left_out:b}");
            // Each trial runs on the latest deployment.
            let mut deployed = ran.deployed().into_iter();
            let mut deployment = None;
            for (trial, planned) in ran.trials.iter().zip(&plan.trials) {
                if trial.deployment.is_some_and(|of| of.trial == 0) {
                    deployment = deployed.next();
                }
                assert!(!cannot_run(trial.mode), "{text} {left_out:b}");
                assert_eq!((trial.mode, &trial.factors), (planned.mode(), &planned.factors));
                assert_eq!(
                    (deployment, trial.path.mode),
                    (Some(trial.mode), Some(trial.mode)),
                    "{text} {left_out:b}"
                );
                assert!(trial.path.proven && trial.verdict.valid, "{:?}", trial.verdict);
            }
            assert_eq!(deployed.next(), None);
        }
    }
}

#[test]
fn proof_of_another_mode_proves_nothing() {
    let mut of_another = good();
    of_another.evidence.path.mode = Some(Mode::Sidecar);
    let ran = run_one(of_another);
    let trial = &ran.trials[0];
    let reason = "path-not-proven: the proof is of mode sidecar, and the trial is of mode gateway";
    assert_eq!((trial.path.proven, ran.first_reason(0)), (false, reason));
    assert!(!trial.verdict.valid);
    assert_eq!(trial.clone().with_proof_of_own_mode(), *trial, "stated once");
}

#[test]
fn effects_of_mesh_are_not_rerun() {
    let ran = run([saturated(), broken()]);
    assert_eq!(ran.reruns(), [None; 6]);
    assert_eq!(ran.trials[1].outcome, TrialOutcome::Failed);
}

#[test]
fn run_on_noisy_machine_has_at_most_a_third_more_trials() {
    let ran = run(vec![disturbed(); 20]);
    assert_eq!(ran.reruns(), [None, None, Some(0), Some(1), None, None, None, None]);
}

#[test]
fn stopped_run_reruns_nothing() {
    // During the first trial, the last one of the repeat, and the first rerun.
    for (stops_during, trials) in [(0, 1), (1, 2), (2, 3)] {
        let mut script = vec![disturbed(); 20];
        script[stops_during].stop_at = Some(Duration::ZERO);
        let ran = run(script);
        assert_eq!(ran.trials.len(), trials);
        assert!(ran.ended.is_ok());
    }
}

#[test]
fn failed_takes_fail_the_run() {
    let ran = run([disturbed(), disturbed(), broken(), broken(), broken()]);
    assert_eq!(ran.reruns(), [None, None, Some(0), Some(1), None]);
    assert!(ran.ended.is_err(), "three in a row");
}

#[test]
fn mode_without_completed_trial_fails_the_run() {
    let plan = plan(TEXT);
    let script = plan.trials.iter().map(|planned| match planned.mode() {
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
    assert_eq!(uses, (0..4).flat_map(|number| (0..3).map(move |trial| (number, trial))).collect::<Vec<_>>());
    for trials in ran.trials.chunks(3) {
        assert!(trials.iter().all(|trial| trial.mode == trials[0].mode && trial.verdict.valid));
    }
    assert!(ran.requests.contains(&Request::Deploy(ran.trials[3].mode, "deployment-001".into())));
    assert!(ran.requests.contains(&Request::BeginTrial("trial-011".into())));
    // Each trial warms up before its window.
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
fn deployment_that_cannot_be_removed_spoils_no_result() {
    let stuck = Some(ScriptedError::new("remove gateway", "it is busy"));
    let ran = run([ScriptedTrial { finish_error: stuck, ..good() }]);
    assert!(ran.ended.is_ok() && ran.trials.iter().all(|trial| trial.verdict.valid));
}
