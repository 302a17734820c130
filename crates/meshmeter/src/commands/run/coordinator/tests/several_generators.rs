//! Generators that share a load.

use super::*;
use experiment::environment::deploy::DriverEventKind;
use results::LoadEvent;

const SHARED: &str = "{name: t, modes: [gateway], repeats: 1, retakes: 0, \
                      load: {rate: 200, duration: 5s, warmup: 1s, timeout: 2s, generators: 3}}";

/// Three generators of one driver, the second of which is `second`.
fn three(second: ScriptedDriver) -> ScriptedTrial {
    let mut script = good();
    for (number, driver) in [driver(), second, driver()].into_iter().enumerate() {
        let name = format!("generator-{}", number + 1);
        script.drivers.insert(name.clone(), told_apart(driver, &name));
    }
    script
}

fn run_three(second: ScriptedDriver) -> Ran {
    run_plan(&plan(SHARED), [three(second)])
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
    // Ready after 3 s, then 1 s of warm-up and a window of 5 s.
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
    assert_eq!(trial.verdict.spoiled_figures(), results::Figures::all());
    assert_eq!((trial.outcome, trial.verdict.valid), (TrialOutcome::Failed, false));
    assert_eq!(ran.count(|request| matches!(request, Request::Interrupt(_))), 2, "the others");
    assert!(ran.elapsed < 6 * SECOND, "{:?}", ran.elapsed);
    assert_eq!(trial.result.as_ref().unwrap().merged.as_ref().unwrap().parts.len(), 2, "what is left");
}

#[test]
fn generator_lost_before_start_releases_no_other() {
    let lost = driver().before_release(driver().dies_at(SECOND, Some(3), "out of memory"));
    let ran = run_three(lost);
    assert_eq!(ran.first_reason(0), "generator-lost: generator-2 ended with status 3: out of memory");
    assert_eq!(released(&ran), []);
    assert_eq!(ran.trials[0].log_tails["generator-2"], ["out of memory"]);
}

/// A generator that gets its start after that.
fn late() -> ScriptedDriver {
    let mut late = driver().dies_at(SECOND, Some(3), "start at the agreed instant");
    late.events.insert(0, (SECOND, DriverEventKind::Load(LoadEvent::StartMissed)));
    late.events.retain(|(at, _)| *at == SECOND);
    late
}

#[test]
fn trial_whose_start_a_generator_misses_is_started_again_with_more_time() {
    let ran = run_plan(&plan(SHARED), [late(), late(), driver()].map(three));
    assert!(ran.trials.len() == 1 && ran.trials[0].verdict.valid, "{:?}", ran.trials[0].verdict);
    let openings: Vec<Timestamp> = released(&ran).iter().map(|(_, at)| *at).collect();
    assert_eq!(openings.len(), 9, "{openings:?}");
    // 265 ms at first. The instants are those of the machine's clock, which goes on meanwhile.
    let later = |round: usize| openings[3 * round].duration_since(openings[3 * round - 3]).as_millis();
    assert!(later(1) >= 265 && later(2) >= 530, "{openings:?}");
}

#[test]
fn trial_whose_start_is_missed_again_and_again_is_lost() {
    let ran = run_plan(&plan(SHARED), [(); 4].map(|()| three(late())));
    assert_eq!(
        ran.first_reason(0),
        "generator-lost: generator-2 ended with status 3: start at the agreed instant"
    );
    assert_eq!(released(&ran).len(), 12);
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
