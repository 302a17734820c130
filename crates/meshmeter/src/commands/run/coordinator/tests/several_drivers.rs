//! Drivers of several pairs.

use super::*;

const NAMES: [&str; 3] = ["pair-1/generator", "pair-2/generator", "pair-3/generator"];

/// Three drivers, the second of which is `second`.
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
fn drivers_start_together_and_each_keeps_its_result() {
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
    // Evenly spread over the 5 ms between two requests of one driver, so that they never send at the same
    // instant.
    let steps: Vec<i128> = starts.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_nanos()).collect();
    assert_eq!(steps, [1_666_667; 2], "{starts:?}");
    assert_ne!(option(&drivers[0], "--seed"), option(&drivers[1], "--seed"), "arrivals of their own");
}

#[test]
fn trial_window_is_where_all_drivers_measure() {
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
