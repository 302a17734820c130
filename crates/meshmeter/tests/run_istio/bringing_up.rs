//! A control plane that dies or stops while a mode is brought up, or between two trials: it is named with its
//! last output, and the next trial starts clean.

use crate::process::Place;
use crate::run::{Scene, check_good};
use results::{TrialOutcome, TrialRecord};
use rustix::process::Signal;
use std::time::Duration;

const RUN_TIMEOUT: Duration = Duration::from_secs(400);

/// What is done to a part of the control plane, and what must be reported about it.
type Tampering = Option<(&'static str, Signal, &'static str)>;

fn scene(repeats: usize) -> Scene {
    Scene::new(&format!(
        "modes: [sidecar]\nrepeats: {repeats}\n\
         load: {{rate: 100, connections: 4, warmup: 100ms, duration: 1s, timeout: 2s}}\n"
    ))
}

pub fn a_control_plane_that_dies_while_a_mode_is_brought_up_is_named() {
    let tamperings: [Tampering; 5] = [
        Some(("istiod", Signal::KILL, "has died: ")),
        Some(("istiod", Signal::STOP, "is unresponsive: ")),
        None,
        Some(("kube-apiserver", Signal::KILL, "has died: ")),
        None,
    ];
    let scene = scene(tamperings.len());
    let mut run = scene.start("out");
    let mut server = None;
    for tampering in tamperings {
        // The service is the first process of a mode; objects, rules and proxies come later.
        server = Some(run.await_other(Place::Anywhere("serve"), server.as_ref()));
        if let Some((name, signal, _)) = tampering {
            run.await_process(Place::Anywhere(name)).signal(signal);
        }
    }
    let ended = run.end_within(RUN_TIMEOUT);
    ended.check_status();
    let trials = ended.trials();
    assert_eq!(trials.len(), tamperings.len(), "{}", ended.text());
    for (trial, tampering) in trials.iter().zip(&tamperings) {
        match tampering {
            Some((name, _, how)) => check_named(trial, name, how),
            None => check_good(trial),
        }
    }
}

fn check_named(trial: &TrialRecord, name: &str, how: &str) {
    let reason = &trial.verdict.reasons[0];
    assert_eq!(trial.outcome, TrialOutcome::Failed, "{name}: {reason}");
    assert!(trial.result.is_none(), "{name}: a generator has run");
    assert!(reason.contains(&format!("{name} {how}")), "{reason}");
    assert!(!trial.log_tails[name].is_empty(), "{name} has said nothing");
}

pub fn a_control_plane_that_dies_between_two_trials_is_replaced() {
    let scene = scene(3);
    let mut run = scene.start("out");
    let istiod = run.await_process(Place::Anywhere("istiod"));
    run.await_line("1/3");
    istiod.signal(Signal::KILL);
    let ended = run.end_within(RUN_TIMEOUT);
    ended.check_status();
    let trials = ended.trials();
    assert_eq!(trials.len(), 3, "{}", ended.text());
    // The second trial may have been under way already.
    if trials[1].outcome == TrialOutcome::Failed {
        check_named(&trials[1], "istiod", "has died: ");
    } else {
        check_good(&trials[1]);
    }
    [&trials[0], &trials[2]].into_iter().for_each(check_good);
}
